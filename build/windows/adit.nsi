; The setup program. Made by the pack program, which defines VERSION, QUAD,
; AMD64 and ARM64 (folders with adit.exe and adit-tray.exe), ICON, LICENSE, OUT.
Unicode true
ManifestDPIAware true
; QUICK is for tests of the setup program, which are in no hurry to download it.
!ifdef QUICK
SetCompress off
!else
SetCompressor /SOLID lzma
SetCompressorDictSize 128
!endif
SetDateSave off
RequestExecutionLevel admin
Name "adit"
OutFile "${OUT}"
InstallDir "$PROGRAMFILES64\Adit"
BrandingText "adit ${VERSION}"
!include MUI2.nsh
!include x64.nsh
!include LogicLib.nsh
!include FileFunc.nsh

!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\Adit"
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN
!define MUI_FINISHPAGE_RUN_FUNCTION Launch
!define MUI_FINISHPAGE_RUN_TEXT "$(OpenWebUI)"
!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "SimpChinese"
LangString OpenWebUI ${LANG_ENGLISH} "Open adit in the browser, to enter the auth token"
LangString OpenWebUI ${LANG_SIMPCHINESE} "在浏览器中打开 adit，填写认证令牌"
LangString InUse ${LANG_ENGLISH} "A program of adit could not be replaced. Close what uses it and try again."
LangString InUse ${LANG_SIMPCHINESE} "无法替换 adit 的程序。请关闭正在使用它的程序后重试。"
LangString OtherInstaller ${LANG_ENGLISH} "adit was installed by its MSI package. Uninstall it first, in Settings, Apps; what you have configured stays. Or update it with an MSI package."
LangString OtherInstaller ${LANG_SIMPCHINESE} "adit 是由 MSI 安装包安装的。请先在“设置”的“应用”中卸载它（已有的配置会保留），或用 MSI 安装包更新。"
LangString NoService ${LANG_ENGLISH} "The service could not be set up. The log above says why."
LangString NoService ${LANG_SIMPCHINESE} "无法设置服务。原因见上面的日志。"

VIProductVersion "${QUAD}"
VIAddVersionKey /LANG=1033 ProductName "adit"
VIAddVersionKey /LANG=1033 FileDescription "adit setup"
VIAddVersionKey /LANG=1033 LegalCopyright "Apache License 2.0"
VIAddVersionKey /LANG=1033 FileVersion "${VERSION}"
VIAddVersionKey /LANG=1033 ProductVersion "${VERSION}"

; Whether adit is here already.
Var Update

Function .onInit
  ${IfNot} ${RunningX64}
    MessageBox MB_ICONSTOP "adit needs 64-bit Windows." /SD IDOK
    SetErrorLevel 2
    Quit
  ${EndIf}
  SetRegView 64
  ; What an MSI package has installed, the two would take from each other: files,
  ; service and entries. Its UpgradeCode says whether there is one.
  System::Call 'msi::MsiEnumRelatedProductsW(w "{6C1F6F0E-8D0B-5F3B-9A53-1D7B8A6C7E11}", i 0, i 0, w .r0) i .r1'
  ${If} $1 == 0
    MessageBox MB_ICONSTOP "$(OtherInstaller)" /SD IDOK
    SetErrorLevel 6
    Quit
  ${EndIf}
  ; Where it was put with /D= it is updated too.
  ${If} $INSTDIR == "$PROGRAMFILES64\Adit"
    ReadRegStr $0 HKLM "${KEY}" "InstallLocation"
    ${If} $0 != ""
      StrCpy $INSTDIR $0
    ${EndIf}
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\adit.exe"
    StrCpy $Update 1
  ${EndIf}
FunctionEnd

Function un.onInit
  SetRegView 64
FunctionEnd

!macro EndTray
  ; By its full path: a program without one is looked for beside the setup first,
  ; in the folder of downloads, where anything may lie.
  ; Asked first: a tray that is killed leaves its icon behind.
  nsExec::Exec '"$SYSDIR\taskkill.exe" /IM adit-tray.exe'
  Pop $0
  Sleep 500
  nsExec::Exec '"$SYSDIR\taskkill.exe" /F /IM adit-tray.exe'
  Pop $0
  Sleep 300
!macroend

!macro EndService
  ${If} ${FileExists} "$INSTDIR\adit.exe"
    nsExec::ExecToLog '"$INSTDIR\adit.exe" service stop'
    Pop $0
  ${EndIf}
  Sleep 300
!macroend

; A file that somebody runs cannot be written. Nothing is replaced then, as a new
; tray beside an old program would be: what was there goes on as it did.
!macro AbortInUse
  Delete "$INSTDIR\adit.exe.new"
  Delete "$INSTDIR\adit-tray.exe.new"
  ${IfNot} ${FileExists} "$INSTDIR\adit-tray.exe"
    Rename "$INSTDIR\adit-tray.exe.old" "$INSTDIR\adit-tray.exe"
  ${EndIf}
  DetailPrint "$(InUse)"
  ; A machine at its limits may be too slow for the service manager, which gives up.
  ${For} $1 1 3
    nsExec::ExecToLog '"$INSTDIR\adit.exe" service start'
    Pop $0
    ${If} $0 == 0
      ${ExitFor}
    ${EndIf}
    Sleep 1000
  ${Next}
  SetErrorLevel 3
  Abort "$(InUse)"
!macroend

; Trays that run go on with the old program under another name, until each sees
; the new one and starts it: in the session and with the rights that it has
; itself, of which the setup program may have neither.
!macro SetTrayAside
  Delete "$INSTDIR\adit-tray.exe.old"
  ClearErrors
  ${If} ${FileExists} "$INSTDIR\adit-tray.exe"
    Rename "$INSTDIR\adit-tray.exe" "$INSTDIR\adit-tray.exe.old"
  ${EndIf}
!macroend

Section "adit"
  SetShellVarContext all
  SetOutPath "$INSTDIR"
  ; The service holds its program.
  !insertmacro EndService
  ${If} ${FileExists} "$INSTDIR\adit.exe"
    ClearErrors
    FileOpen $0 "$INSTDIR\adit.exe" a
    ${If} ${Errors}
      !insertmacro AbortInUse
    ${EndIf}
    FileClose $0
  ${EndIf}
  ; Beside the old ones first: where the disk is full, those are still whole.
  ClearErrors
  SetOverwrite try
  ${If} ${IsNativeARM64}
    File "/oname=adit.exe.new" "${ARM64}\adit.exe"
    File "/oname=adit-tray.exe.new" "${ARM64}\adit-tray.exe"
  ${Else}
    File "/oname=adit.exe.new" "${AMD64}\adit.exe"
    File "/oname=adit-tray.exe.new" "${AMD64}\adit-tray.exe"
  ${EndIf}
  ${If} ${Errors}
    !insertmacro AbortInUse
  ${EndIf}
  !insertmacro SetTrayAside
  ${If} ${Errors}
    ; One that hangs has the other name since the last update.
    !insertmacro EndTray
    !insertmacro SetTrayAside
    ${If} ${Errors}
      !insertmacro AbortInUse
    ${EndIf}
  ${EndIf}
  Delete "$INSTDIR\adit.exe"
  ClearErrors
  Rename "$INSTDIR\adit.exe.new" "$INSTDIR\adit.exe"
  ${If} ${Errors}
    !insertmacro AbortInUse
  ${EndIf}
  Rename "$INSTDIR\adit-tray.exe.new" "$INSTDIR\adit-tray.exe"
  ${If} ${Errors}
    !insertmacro AbortInUse
  ${EndIf}
  SetOverwrite on
  File "/oname=LICENSE.txt" "${LICENSE}"
  nsExec::ExecToLog '"$INSTDIR\adit.exe" service install'
  Pop $0
  ${If} $0 != 0
    ${If} $Update != 1
      ; No entry in the list of programs would remove them.
      Delete "$INSTDIR\adit.exe"
      Delete "$INSTDIR\adit-tray.exe"
      Delete "$INSTDIR\LICENSE.txt"
      SetOutPath "$TEMP"
      RMDir /REBOOTOK "$INSTDIR"
    ${EndIf}
    SetErrorLevel 4
    Abort "$(NoService)"
  ${EndIf}
  nsExec::ExecToLog '"$INSTDIR\adit.exe" service start'
  Pop $0
  ${If} $0 != 0
    SetErrorLevel 5
    DetailPrint "$(NoService)"
  ${EndIf}
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\adit.lnk" "$INSTDIR\adit-tray.exe" "--open"
  WriteRegStr HKLM "${RUN}" "Adit" '"$INSTDIR\adit-tray.exe" --autostart'
  WriteRegStr HKLM "${KEY}" "DisplayName" "adit"
  WriteRegStr HKLM "${KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKLM "${KEY}" "Publisher" "The adit authors"
  WriteRegStr HKLM "${KEY}" "DisplayIcon" "$INSTDIR\adit.exe"
  WriteRegStr HKLM "${KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKLM "${KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKLM "${KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKLM "${KEY}" "NoModify" 1
  WriteRegDWORD HKLM "${KEY}" "NoRepair" 1
  ; One that hangs keeps its file until the next update.
  ${For} $1 1 30
    Delete "$INSTDIR\adit-tray.exe.old"
    ${IfNot} ${FileExists} "$INSTDIR\adit-tray.exe.old"
      ${Break}
    ${EndIf}
    Sleep 500
  ${Next}
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKLM "${KEY}" "EstimatedSize" $0
SectionEnd

Function Launch
  ; Through the shell, so that tray and browser do not run as administrator.
  Exec '"$WINDIR\explorer.exe" "$SMPROGRAMS\adit.lnk"'
FunctionEnd

Section "Uninstall"
  SetShellVarContext all
  !insertmacro EndTray
  !insertmacro EndService
  nsExec::ExecToLog '"$INSTDIR\adit.exe" service uninstall'
  Pop $0
  ; A program that somebody runs in a terminal goes with the next start of Windows.
  Delete /REBOOTOK "$INSTDIR\adit.exe"
  Delete /REBOOTOK "$INSTDIR\adit-tray.exe"
  Delete /REBOOTOK "$INSTDIR\adit-tray.exe.old"
  Delete "$INSTDIR\LICENSE.txt"
  Delete "$INSTDIR\uninstall.exe"
  RMDir /REBOOTOK "$INSTDIR"
  Delete "$SMPROGRAMS\adit.lnk"
  DeleteRegValue HKLM "${RUN}" "Adit"
  ; What the trays have noted for each person who is signed in: who removes adit may be
  ; another, as the administrator whom an ordinary user has asked. The profile of whoever
  ; is not signed in is not loaded; a value there names a program that is gone, and does
  ; nothing.
  StrCpy $1 0
  ${Do}
    EnumRegKey $0 HKU "" $1
    ${If} $0 == ""
      ${Break}
    ${EndIf}
    DeleteRegValue HKU "$0\${RUN}" "Adit"
    DeleteRegKey HKU "$0\Software\Adit"
    IntOp $1 $1 + 1
  ${Loop}
  DeleteRegKey HKLM "${KEY}"
  ; What a person has configured stays, unless /PURGE asks for it.
  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/PURGE" $1
  ${IfNot} ${Errors}
    ; For all, this is %ProgramData% as the system knows it: an environment may say
    ; that it is any folder.
    ${If} $APPDATA != ""
      RMDir /r "$APPDATA\Adit"
    ${EndIf}
  ${EndIf}
SectionEnd
