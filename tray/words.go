package tray

import "strings"

// words are the texts in one language.
type words struct {
	notRunning, silent, startDaemon, openWebUI, enterToken string
	pause, resume, reconnect, atLogin, about, quit         string
	noEndpoints, more, openURL, showQR                     string
	daemonVersion, unknown, copied, trouble                string
	lost, back, newURL                                     string
	noHost, noHostBody                                     string
	states                                                 map[string]string
	endpointStates                                         map[string]string
}

// absence says why the daemon is not reachable.
func (w words) absence(v View) string {
	if v.Silent {
		return w.silent
	}
	return w.notRunning
}

var english = words{
	notRunning:  "The daemon is not running",
	silent:      "The daemon does not answer",
	startDaemon: "Start the daemon",
	openWebUI:   "Open Web UI",
	enterToken:  "Enter the auth token…",
	pause:       "Pause", resume: "Resume", reconnect: "Reconnect",
	atLogin: "Start at login", about: "About", quit: "Quit",
	noEndpoints: "No endpoints", more: "%d more in the Web UI…",
	openURL: "Open in the browser", showQR: "Show QR code",
	daemonVersion: "Daemon %s", unknown: "(unknown)",
	copied: "Address copied", trouble: "adit could not do that",
	lost: "Connection lost", back: "Connected again", newURL: "New public address",
	noHost:     "adit runs, but has no place for its icon",
	noHostBody: "This desktop has no tray. On GNOME, turn on the AppIndicator extension. The Web UI works without it.",
	states: map[string]string{
		"connected": "Connected", "connecting": "Connecting", "reconnecting": "Reconnecting", "paused": "Paused",
		"rejected": "The relay refused the auth token", "unconfigured": "No auth token yet",
		Locked: "The daemon asks for its Bearer token",
	},
	endpointStates: map[string]string{"starting": "starting", "waiting": "waiting", "stopped": "stopped", "failed": "failed", Down: "service down"},
}

var chinese = words{
	notRunning:  "守护进程未运行",
	silent:      "守护进程没有响应",
	startDaemon: "启动守护进程",
	openWebUI:   "打开网页界面",
	enterToken:  "填写认证令牌…",
	pause:       "暂停", resume: "恢复", reconnect: "重新连接",
	atLogin: "登录时启动", about: "关于", quit: "退出",
	noEndpoints: "没有端点", more: "网页界面中还有 %d 个…",
	openURL: "在浏览器中打开", showQR: "显示二维码",
	daemonVersion: "守护进程 %s", unknown: "（未知）",
	copied: "地址已复制", trouble: "操作未能完成",
	lost: "连接已断开", back: "已重新连接", newURL: "新的公网地址",
	noHost:     "adit 正在运行，但没有地方显示图标",
	noHostBody: "此桌面没有系统托盘。在 GNOME 上请启用 AppIndicator 扩展。网页界面不受影响。",
	states: map[string]string{
		"connected": "已连接", "connecting": "连接中", "reconnecting": "重新连接中", "paused": "已暂停",
		"rejected": "中继拒绝了认证令牌", "unconfigured": "尚未填写认证令牌",
		Locked: "守护进程要求提供 Bearer 令牌",
	},
	endpointStates: map[string]string{"starting": "启动中", "waiting": "等待连接", "stopped": "已停止", "failed": "出错", Down: "服务不可达"},
}

// wordsFor returns the texts for the first of a person's languages that has any.
func wordsFor(languages []string) words {
	for _, l := range languages {
		l = strings.ToLower(l)
		switch {
		case strings.HasPrefix(l, "zh"):
			return chinese
		case strings.HasPrefix(l, "en"), l == "c", strings.HasPrefix(l, "c."), l == "posix":
			return english
		}
	}
	return english
}
