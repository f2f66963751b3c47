// Trades the code in the address for a cookie. The code is in the fragment, so
// that it is in no log and no Referer, and leaves the address bar at once.
"use strict";
(async () => {
  const words = {
    en: {
      busy: "Signing in …",
      unauthorized: "The link has been used or is too old. Run “adit open” for a new one, or use the tray.",
      away: "The daemon does not answer. Is it running?",
    },
    "zh-CN": {
      busy: "正在登录…",
      unauthorized: "链接已被使用或已过期。请运行 “adit open” 获取新链接，或使用托盘图标。",
      away: "守护进程没有响应。它在运行吗？",
    },
  };
  // The Web UI's own choice, else the browser's.
  let chosen = null;
  try {
    chosen = localStorage.getItem("adit.lang");
  } catch {}
  const language = words[chosen] ? chosen : /^zh/i.test(navigator.language) ? "zh-CN" : "en";
  const say = words[language];
  document.documentElement.lang = language;
  const message = document.getElementById("message");
  message.textContent = say.busy;
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/login");
  try {
    const answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    const { error } = await answer.json();
    message.textContent = say[error.code] ?? error.message;
  } catch {
    message.textContent = say.away;
  }
})();
