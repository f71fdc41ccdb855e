package builtin

import (
	"context"
	"time"
	_ "time/tzdata" // zones are the same on every machine, also on one without a zone database

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

type timeArgs struct {
	Zone string `json:"zone,omitempty" jsonschema:"description=IANA name of a time zone such as Europe/Berlin\\, UTC if left out"`
}

func currentTime(k *Kind) tool.Function {
	return tool.Func("current_time", "Tell the current date and time.", machine.EffectRead,
		func(_ context.Context, _ tool.Call, args timeArgs) (string, error) {
			zone, err := time.LoadLocation(args.Zone)
			if err != nil || args.Zone == "Local" {
				return "", tool.Failf("", "there is no time zone %s; give an IANA name such as Europe/Berlin or Asia/Shanghai, or UTC", show(args.Zone))
			}
			return k.Now().In(zone).Format(time.RFC3339), nil
		})
}
