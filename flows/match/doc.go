// Package match finds things in what a human wrote, by rule and without a model: keywords and patterns of a flow, numbers,
// dates, addresses, yes and no, and whole answers by the schema of their question.
//
// Case and width make no difference. A hit is never a piece of a longer token: where it begins or ends with a Latin letter
// or a digit, no Latin letter, digit or underscore may touch it there, nor be joined to it by one of - @ . without a space.
// So "refund" is not in "refundable" and "non-refundable", and A1001 neither in A10015, A1001-B and 1A1001 nor in
// a1001@b.co; but it is in #A1001, (A1001), A1001/A1002 and "A1001." Letters of other scripts with spaces, such as Greek and
// Cyrillic, block only their own kind. Scripts that are written without spaces (Han, Kana, Hangul) never block: there, a hit
// is found anywhere. A keyword or pattern that begins or ends with a sign is not held to the rule on that side. Every hit is
// given as it stands in the text.
//
// A word can be denied: "no refund", 不是质量问题. Find does not care, Meant does. It looks directly before the hit only, for
// a closed list of words: not, no, never, without, cannot and what ends in n't, with articles, some prepositions and wanting
// (want, need, like) between; 不, 不是, 不要, 不想要, 没有, 别, 并非 and the like, but not in 是不是, 有没有 and 特别. Patterns
// are never denied.
//
// The finders by type would rather find nothing than something wrong: what is part of a larger token (A1001, 2024-001,
// 10:30) is no number, and 1/2/2024 is no date, since it may be two.
//
// The package imports flows/machine only. Open match.go first.
package match
