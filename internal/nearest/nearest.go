// Package nearest finds the word that a person most likely meant by a misspelt one, such as the
// name of a command, a flag or a key.
package nearest

import "strings"

// Of returns the word that a person most likely meant: one that begins with typed, or that is at
// most two typing errors away, or one if the word is short. It returns "" if there is none.
func Of(typed string, words []string) string {
	best, least := "", 3
	if len(typed) < 6 {
		least = 2 // of short words nearly every other is two slips away
	}
	for _, w := range words {
		d := slips(typed, w)
		if len(typed) > 2 && strings.HasPrefix(w, typed) {
			d = 1
		}
		if d < least {
			best, least = w, d
		}
	}
	return best
}

// slips is the number of letters to change, put in, leave out or swap with the
// next to come from a to b (optimal string alignment).
func slips(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
