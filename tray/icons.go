package tray

import "embed"

//go:embed icons/*.png icons/*.ico
var iconFiles embed.FS

// iconBytes returns an icon: look is also template, kind png or ico.
func iconBytes(icon Icon, look Look, kind string) []byte {
	data, err := iconFiles.ReadFile("icons/" + string(icon) + "-" + string(look) + "." + kind)
	if err != nil {
		panic("the program lacks its own icon: " + err.Error())
	}
	return data
}

// Look is the drawing of an icon that suits a panel.
type Look string

// The looks: a dark mark for a light panel, a light one for a dark panel, and a dark one with a
// light edge if the panel's colour is not known.
const (
	LookLight Look = "light"
	LookDark  Look = "dark"
	LookAny   Look = "any"
)
