package states

import "flowctl/engine"

// Builtin gives the handlers by the name that a state's `handler` gives. The map is the caller's, who may add to it.
func Builtin() map[string]engine.Handler {
	return map[string]engine.Handler{
		"agent":   agent{},
		"intent":  intent{},
		"collect": collect{},
		"plan":    plan{},
		"execute": execute{},
		"ask":     ask{},
		"confirm": confirm{},
		"call":    call{},
		"route":   route{},
		"end":     end{},
	}
}
