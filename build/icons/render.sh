#!/bin/sh
# Renders the committed icons from adit.svg and mark.svg.in.
# Needs rsvg-convert, icotool (icoutils) and png2icns (icnsutils).
set -eu
cd "$(dirname "$0")"
out=../../tray/icons
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
inner='<path d="M13 30V16a3 3 0 0 1 6 0v14z"/>'
dot() { printf '<circle cx="24.500" cy="24.500" r="7.500" fill="%s"/>%s' "$1" "$2"; }
bang='<path d="M23.300 19.500h2.400l-.4 6h-1.600z" fill="#fff"/><circle cx="24.500" cy="28" r="1.400" fill="#fff"/>'
wait='<g fill="#fff"><circle cx="21" cy="24.500" r="1.300"/><circle cx="24.500" cy="24.500" r="1.300"/><circle cx="28" cy="24.500" r="1.300"/></g>'
cut() { # on a template there is one colour: the badge is told by its hole
  case $1 in attention) printf '<circle cx="24.500" cy="24.500" r="7" fill="#000"/>';; connecting) printf '<circle cx="24.500" cy="24.500" r="5.500" fill="none" stroke="#000" stroke-width="2.500"/>';; esac
}
for state in connected connecting off attention; do
  fade=1; in=$inner
  case $state in off) fade=.55; in='';; connecting) in='';; esac
  for look in light dark any template; do
    edge=''
    case $look in any) ink='#1f2d3a'; edge='stroke="#fff" stroke-width="2.4" stroke-linejoin="round" paint-order="stroke"';; light) ink='#1f2d3a';; dark) ink='#ffffff';; template) ink='#000000';; esac
    badge=''
    if [ $look = template ]; then badge=$(cut $state); else
      case $state in connected) badge=$(dot '#2ea043' '');; connecting) badge=$(dot '#d9922b' "$wait");; attention) badge=$(dot '#d73a49' "$bang");; esac
    fi
    sed -e "s|@INK@|$ink|" -e "s|@FADE@|$fade|" -e "s|@EDGE@|$edge|" -e "s|@INNER@|$in|" -e "s|@BADGE@|$badge|" mark.svg.in >"$tmp/i.svg"
    if [ $look = template ]; then
      rsvg-convert -w 36 -h 36 "$tmp/i.svg" -o "$out/$state-template.png"
    else
      rsvg-convert -w 64 -h 64 "$tmp/i.svg" -o "$out/$state-$look.png"
      for n in 16 24 32 48; do rsvg-convert -w $n -h $n "$tmp/i.svg" -o "$tmp/$n.png"; done
      icotool -c -o "$out/$state-$look.ico" "$tmp/16.png" "$tmp/24.png" "$tmp/32.png" "$tmp/48.png"
    fi
  done
done
for n in 16 32 48 64 128 256 512 1024; do rsvg-convert -w $n -h $n adit.svg -o "$tmp/$n.png"; done
icotool -c -o adit.ico "$tmp/16.png" "$tmp/32.png" "$tmp/48.png" --raw="$tmp/256.png"
png2icns adit.icns "$tmp/16.png" "$tmp/32.png" "$tmp/48.png" "$tmp/128.png" "$tmp/256.png" "$tmp/512.png" "$tmp/1024.png" >/dev/null
for n in 48 128 256; do cp "$tmp/$n.png" "adit-$n.png"; done
