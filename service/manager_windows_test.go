package service

import "testing"

func TestQuotedProgramLeavesNoRoomForAnother(t *testing.T) {
	for command, want := range map[string]string{
		`C:\Program Files\Adit\adit.exe start`:   `"C:\Program Files\Adit\adit.exe" start`,
		`"C:\Program Files\Adit\adit.exe" start`: `"C:\Program Files\Adit\adit.exe" start`,
		`C:\Adit\ADIT.EXE start`:                 `C:\Adit\ADIT.EXE start`,
		`C:\My Tools\ADIT.EXE`:                   `"C:\My Tools\ADIT.EXE"`,
		``:                                       ``,
	} {
		if got := quotedProgram(command); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestTheProgramOfAServiceIsTold(t *testing.T) {
	for command, want := range map[string]string{
		`C:\Program Files\Adit\adit.exe start`:   `C:\Program Files\Adit\adit.exe`,
		`"C:\Program Files\Adit\adit.exe" start`: `C:\Program Files\Adit\adit.exe`,
		`C:\Adit\ADIT.EXE start`:                 `C:\Adit\ADIT.EXE`,
	} {
		if got, err := firstWord(quotedProgram(command)); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", command, got, err, want)
		}
	}
}
