// Package match finds things in what a human wrote, by rule and without a model: keywords and patterns of a flow, and
// numbers, dates, yes and no.
//
// Case and width make no difference. A hit must not touch a letter or digit of its own kind on either side: "refund" is
// not in "refundable", A1001 not in A10015. Scripts that are written without spaces (Han, Kana, Hangul) never block:
// there, a hit is found anywhere. Every hit is given as it stands in the text.
//
// The finders by type would rather find nothing than something wrong: what is part of a larger token (A1001, 2024-001,
// 10:30) is no number, and 1/2/2024 is no date, since it may be two.
//
// The package imports flows/machine only. Open match.go first.
package match
