package tray

import "embed"

//go:embed icons/*.png icons/*.ico
var iconFiles embed.FS

// iconBytes returns an icon: look is light, dark or template, kind png or ico.
func iconBytes(icon Icon, look, kind string) []byte {
	data, err := iconFiles.ReadFile("icons/" + string(icon) + "-" + look + "." + kind)
	if err != nil {
		panic("the program lacks its own icon: " + err.Error())
	}
	return data
}

// iconLook names the look for a panel: dark marks are for light panels, which
// the files are named after.
func iconLook(darkPanel bool) string {
	if darkPanel {
		return "dark"
	}
	return "light"
}
