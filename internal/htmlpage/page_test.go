package htmlpage

import (
	"strings"
	"testing"
)

var fields = []string{"Title", "Text", "Host"}

func TestValuesAreEscaped(t *testing.T) {
	p, err := Parse("a.html", `<title>{{.Title}}</title><p lang="{{.Nothing}}`, "Title", "Nothing")
	if err == nil {
		t.Fatalf("a tag without an end is taken: %v", p)
	}
	for _, c := range []struct{ page, want string }{
		{`{{.Title}}`, `&lt;b&gt; &amp; &#34;x&#34; &#39;y&#39;`},
		{`<b>{{ .Title }}</b>`, `<b>&lt;b&gt; &amp; &#34;x&#34; &#39;y&#39;</b>`},
		{"<title>\n{{.Title}}</title>{{.Text}}", "<title>\n&lt;b&gt; &amp; &#34;x&#34; &#39;y&#39;</title>"},
		{`<p title="{{.Title}}" data-x='{{.Host}}'>`, `<p title="&lt;b&gt; &amp; &#34;x&#34; &#39;y&#39;" data-x='a{{.Text}}b'>`},
		{`<style>@media print{a{b:c}}</style>{{.Host}}}}`, `<style>@media print{a{b:c}}</style>a{{.Text}}b}}`},
		{``, ``},
	} {
		p, err := Parse("a.html", c.page, fields...)
		if err != nil {
			t.Errorf("%s: %v", c.page, err)
			continue
		}
		if got := string(p.Render(map[string]string{"Title": `<b> & "x" 'y'`, "Host": "a{{.Text}}b"})); got != c.want {
			t.Errorf("%s: got %s, want %s", c.page, got, c.want)
		}
	}
}

func TestOtherThanFieldsIsRefused(t *testing.T) {
	for _, c := range []struct{ page, want string }{
		{"a\n{{if .Text}}b{{end}}", "a.html:2: {{if .Text}} is not allowed; allowed are {{.Title}}, {{.Text}}, {{.Host}}"},
		{"{{with .Text}}{{.}}{{end}}", "a.html:1: {{with .Text}} is not allowed; "},
		{"\n\n{{.title}}", "a.html:3: {{.title}} is not allowed; "},
		{"{{.Title | html}}", "a.html:1: {{.Title | html}} is not allowed; "},
		{"{{- .Title -}}", "a.html:1: {{- .Title -}} is not allowed; "},
		{"{{Title}}", "a.html:1: {{Title}} is not allowed; "},
		{"{{.}}", "a.html:1: {{.}} is not allowed; "},
		{"{{}}", "a.html:1: {{}} is not allowed; "},
		{"{{{.Title}}}", "a.html:1: {{{.Title}} is not allowed; "},
		{"{{/* a\ncomment */}}", "a.html:1: {{/* a comment */}} is not allowed; "},
		{"{{" + strings.Repeat("é", 100) + "}}", "a.html:1: {{" + strings.Repeat("é", 40) + "…}} is not allowed; "},
		{"{{.Title}}\n{{.Titl", "a.html:2: {{ has no }} behind it; "},
		{strings.Repeat("{{.Title}}\n", 101), "a.html:101: it has more than 100 places for values"},
	} {
		_, err := Parse("a.html", c.page, fields...)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, want %s…", c.page, err, c.want)
		}
	}
	if _, err := Parse("a.html", "{{.Title}}"); err == nil || !strings.HasSuffix(err.Error(), "nothing may stand in {{ }} here") {
		t.Errorf("without fields: %v", err)
	}
}

func TestPlacesWhereEscapingIsNotEnoughAreRefused(t *testing.T) {
	for _, c := range []struct {
		page string
		want error
	}{
		{`<script>var a = "{{.Text}}"</script>`, errRaw},
		{`<SCRIPT >{{.Text}}`, errRaw},
		{`<script/>{{.Text}}</script>`, errRaw},
		{`<script><!--<script></script>{{.Text}}--></script>`, errRaw},
		{`<style>p:after{content:"{{.Text}}"}</style>`, errRaw},
		{`<noscript>{{.Text}}</noscript>`, errRaw},
		{`<iframe>{{.Text}}</iframe>`, errRaw},
		{`<xmp>{{.Text}}</xmp>`, errRaw},
		{`<plaintext></plaintext>{{.Text}}`, errRaw},
		{`<title></ti{{.Text}}tle><b>`, errTitle},
		{`<textarea><b title="{{.Text}}"></textarea>`, errTitle},
		{`<!-- {{.Text}} -->`, errComment},
		{`<!doctype {{.Text}}>`, errComment},
		{`<!{{.Text}}>`, errComment},
		{`<?x {{.Text}}?>`, errComment},
		{`<![CDATA[{{.Text}}]]>`, errComment},
		{`</{{.Text}}>`, errTag},
		{`</b {{.Text}}>`, errTag},
		{`<{{.Text}}>`, errTag},
		{`<{{.Text}}script>`, errTag},
		{`<h{{.Text}}>`, errTag},
		{`<b {{.Text}}>`, errTag},
		{`<b {{.Text}}="a">`, errTag},
		{`<b data-{{.Text}}="a">`, errTag},
		{`<b title="a"{{.Text}}>`, errTag},
		{`<b/{{.Text}}>`, errTag},
		{`<b =a{{.Text}}>`, errTag},
		{`<b title={{.Text}}>`, errUnquoted},
		{`<b title=a{{.Text}}b>`, errUnquoted},
		{`<b title= {{.Text}}>`, errUnquoted},
		{"<b title=`{{.Text}}`>", errUnquoted},
		{`<b title={{.Text}}"a">`, errUnquoted},
		{`<b onclick="{{.Text}}">`, errAttribute},
		{`<b ONCLICK='x("{{.Text}}")'>`, errAttribute},
		{`<b style="color:{{.Text}}">`, errAttribute},
		{`<a href="{{.Text}}">`, errAttribute},
		{`<a href="https://{{.Host}}/">`, errAttribute},
		{`<img src="{{.Text}}">`, errAttribute},
		{`<img title="x&#1; =/` + "`" + `x" src="{{.Text}}">`, errAttribute},
		{`<form action="{{.Text}}">`, errAttribute},
		{`<iframe srcdoc="{{.Text}}">`, errAttribute},
		{`<meta http-equiv="refresh" content="{{.Text}}">`, errRefresh},
		{`<meta content="{{.Text}}" HTTP-EQUIV=refresh>`, errRefresh},
		{`<b title="{{.Text}}`, errUnclosed},
		{`<b title="a" {{.Text}}`, errUnclosed},
		{"a\x01{{.Text}}", errControl},
		{"{{.Text}}a\x01", errControl},
	} {
		_, err := Parse("a.html", "\n<p>{{.Title}}\n"+c.page, fields...)
		field := "Text"
		if strings.Contains(c.page, "{{.Host}}") {
			field = "Host"
		}
		line := "a.html:3: "
		if c.want == errControl && strings.HasPrefix(c.page, "a\x01") {
			line = "a.html:3: "
		}
		want := line + "{{." + field + "}} is " + c.want.Error() + "; a value may stand in text, or between quotes as the value of alt, class, "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s…", c.page, err, want)
		}
	}
}

func TestPagesAsPeopleWriteThemAreTaken(t *testing.T) {
	for _, page := range []string{
		"<!DOCTYPE html>\n<html lang=en><!-- ours --><meta charset=utf-8><meta name=\"description\" content=\"{{.Text}}\"><title>{{.Title}} - us</title>" +
			"<style>p:empty{display:none}</style><body class=\"s{{.Text}}\"><svg viewBox='0 0 1 1'><title>Logo</title><path d=\"M0 0\"/></svg>" +
			"<h1>{{.Title}}</h1><p>{{.Text}}</p><img src=\"data:image/gif;base64,AA==\" alt='{{.Title}}'><input value=\"{{.Host}}\" aria-label=\"{{.Title}}\"/>1 < 2 & {{.Host}}",
		"plain text {{.Host}} & &{{.Title}}; <",
		"<script>a</script><style>b</style>{{.Title}}",
		"no places, <a href=x onclick=y> \x01 <!-- ",
		"\ufeff<p>{{.Title}}",
		"<textarea>{{.Text}}</textarea><title>{{.Text}}",
	} {
		if _, err := Parse("a.html", page, fields...); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}
