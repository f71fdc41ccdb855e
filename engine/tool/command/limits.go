package command

import (
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// limits bound each process of a command. Zero is no limit.
type limits struct {
	memory uint64        // bytes of data, beside the program itself
	cpu    time.Duration // of CPU time, whole seconds
}

func (l limits) none() bool { return l == limits{} }

// limits gives the limits of the declaration, or says that this system has none.
func (c *Config) limits() (limits, error) {
	memory, err := c.memory()
	if err != nil {
		return limits{}, err
	}
	seconds := time.Duration(c.CPU).Truncate(time.Second)
	if seconds < time.Duration(c.CPU) {
		seconds += time.Second // the system counts whole seconds
	}
	l := limits{memory: memory, cpu: seconds}
	if !l.none() && !canLimit {
		return limits{}, errors.New("memory and cpu of a command can be limited on Linux only, and this is " + runtime.GOOS +
			"; remove them from the flow, or run it on Linux")
	}
	return l, nil
}

// memory reads the size; 0 where none is given.
func (c *Config) memory() (uint64, error) {
	if c.Memory == "" {
		return 0, nil
	}
	for unit, shift := range map[string]uint{"KiB": 10, "MiB": 20, "GiB": 30} {
		digits, ok := strings.CutSuffix(c.Memory, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if err == nil && n > 0 && n <= math.MaxInt64>>shift {
			return n << shift, nil
		}
	}
	return 0, errors.New("memory takes a size with its unit, such as 512MiB or 2GiB, not " + strconv.Quote(c.Memory))
}
