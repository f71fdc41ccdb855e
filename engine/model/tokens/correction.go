package tokens

import (
	"math"
	"slices"
)

// Correction is how far the counts of a model have been below what its endpoint reported. It is a value, without hidden
// parts, that goes through JSON unchanged; the zero value corrects nothing. Add gives the next one from the events of a
// run in their order, so that the same events give the same Correction.
//
// It corrects upwards only. A count that is too high costs a little of the window; one that is too low costs a refused
// request or a prompt that is cut in silence, and reports that are too low often come from such a cut.
type Correction struct {
	// Recent is the newest ratios of reported to counted tokens in thousandths, each from 500 to 3000, the newest first;
	// 0 stands for none yet.
	Recent [5]int64 `json:"recent"`
}

const (
	perMille = 1000
	minRatio = 500  // in thousandths
	maxRatio = 3000 // in thousandths

	// minCounted is the least count, in tokens, that says something: below it, what an endpoint adds of its own to every
	// request outweighs the text.
	minCounted = 200
)

// Add gives the correction that has also seen a request that was counted as some tokens, before any correction, and
// reported as others. What says nothing leaves it as it is: a report of 0 (the endpoint does not say), a count below 200,
// and a report that is Short.
func (c Correction) Add(counted, reported int64) Correction {
	if counted < minCounted || reported <= 0 || Short(counted, reported) {
		return c
	}
	ratio := int64(maxRatio)
	if reported < math.MaxInt64/perMille {
		ratio = min(max(reported*perMille/counted, minRatio), maxRatio)
	}
	copy(c.Recent[1:], c.Recent[:])
	c.Recent[0] = ratio
	return c
}

// Apply corrects a count, upwards to a whole token: by the median of the recent ratios and of one that is 1, the lower one
// of two. So one outlier never raises it, also when it comes first, and two reports that agree are believed. The result is
// from counted to three times counted.
func (c Correction) Apply(counted int64) int64 {
	ratio := c.ratio()
	if counted <= 0 || ratio == perMille {
		return counted
	}
	if counted > math.MaxInt64/maxRatio {
		return math.MaxInt64
	}
	return (counted*ratio + perMille - 1) / perMille
}

// ratio gives what Apply multiplies by, in thousandths, from 1000 to 3000, also where Recent was not made by Add.
func (c Correction) ratio() int64 {
	ratios := []int64{perMille}
	for _, r := range c.Recent {
		if r > 0 {
			ratios = append(ratios, r)
		}
	}
	slices.Sort(ratios)
	return min(max(ratios[(len(ratios)-1)/2], perMille), maxRatio)
}

// What makes a report short.
const (
	shortCounted = 1000 // tokens that were counted, at least
	shortPart    = 2    // the report is less than one of so many parts of the count
)

// Short says whether an endpoint reports far fewer prompt tokens than were counted: less than half, of 1,000 counted ones
// or more, which is further off than counting is. Servers that cut a prompt to their own window in silence report so; set
// the window of the model to the server's, or the server's to what the model takes. A few servers leave out what they had
// in their cache. A report of 0 says nothing and is not short.
func Short(counted, reported int64) bool {
	return reported > 0 && counted >= shortCounted && reported < counted/shortPart
}
