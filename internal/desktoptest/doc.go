// Package desktoptest tries what people install on their machines the way they would use it: the
// Linux packages under a booted systemd, the Windows installers under Wine, the tray in a panel,
// and the structure of the macOS package. It has tests only, and needs root and many tools;
// ADIT_REQUIRE=1 makes it run.
package desktoptest
