package notificationstats

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"time"
)

// The geometry of the plot in pixels.
const (
	plotWidth, plotHeight = 860, 420
	left, right           = 70, 830 // ends of the time axis
	top, bottom           = 60, 350 // ends of the other axis
)

// axisTimes are the labels of the time axis.
var axisTimes = []struct {
	at   time.Duration
	name string
}{
	{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}, {10 * time.Second, "10 s"},
	{time.Minute, "1 min"}, {10 * time.Minute, "10 min"}, {time.Hour, "1 h"}, {6 * time.Hour, "6 h"},
	{24 * time.Hour, "1 d"}, {240 * time.Hour, "10 d"}, {2400 * time.Hour, "100 d"}, {24000 * time.Hour, "1000 d"},
}

// Plot returns a histogram of the times between a notification and its copy as SVG, with a
// logarithmic time axis. The file has no style sheet and no script.
func (r *Report) Plot() []byte {
	d := cmp.Or(r.Intervals, &Distribution{})
	title := "Time between a notification and its copy"
	text := fmt.Sprintf("copies: %d in %d notifications; time: %s to %s, median %s", d.Count, r.Notifications, d.Min, d.Max, d.P50)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc" `+
		`font-family="sans-serif" font-size="13" fill="#222">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<title id="title">%s</title>`+"\n"+`<desc id="desc">%s</desc>`+"\n", title, text)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	label(&b, left, 24, "start", ` font-size="16" font-weight="bold"`, title)
	label(&b, left, 44, "start", "", text)
	d.plot(&b)
	fmt.Fprintf(&b, `<path d="M%d %dH%d" stroke="#222"/>`+"\n", left, bottom, right)
	label(&b, (left+right)/2, bottom+50, "middle", "", "time between the first notification and the copy")
	label(&b, 20, (top+bottom)/2, "middle", fmt.Sprintf(` transform="rotate(-90 20 %d)"`, (top+bottom)/2), "copies")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func label(b *bytes.Buffer, x, y float64, anchor, attributes, text string) {
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, attributes, text)
}

// plot draws the bars and the labels of the axes. The time axis has whole decades.
func (d *Distribution) plot(b *bytes.Buffer) {
	if d.Count == 0 {
		return
	}
	var most int64
	for _, bin := range d.Histogram {
		most = max(most, bin.Count)
	}
	first, last := d.Histogram[0], d.Histogram[len(d.Histogram)-1]
	low, high := math.Floor(math.Log10(float64(first.From))+0.01), math.Ceil(math.Log10(float64(last.To))-0.01)
	x := func(s Seconds) float64 {
		return math.Round(10*(left+(right-left)*(math.Log10(float64(s))-low)/(high-low))) / 10
	}
	step := int64(math.Pow10(int(math.Log10(float64(most)))))
	if most < 2*step {
		step = max(1, step/5)
	}
	ceiling := (most + step - 1) / step * step
	y := func(n int64) float64 {
		return math.Round(10*(bottom-(bottom-top)*float64(n)/float64(ceiling))) / 10
	}
	for n := int64(0); n <= ceiling; n += step {
		fmt.Fprintf(b, `<path d="M%d %gH%d" stroke="#ddd"/>`+"\n", left, y(n), right)
		label(b, left-8, y(n)+4, "end", "", fmt.Sprint(n))
	}
	for _, tick := range axisTimes {
		if at := x(Seconds(tick.at.Seconds())); at >= left && at <= right {
			fmt.Fprintf(b, `<path d="M%g %dv6" stroke="#222"/>`+"\n", at, bottom)
			label(b, at, bottom+22, "middle", "", tick.name)
		}
	}
	for _, bin := range d.Histogram {
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="%.1f" height="%.1f" fill="#2a6fb0"><title>%s to %s: %d</title></rect>`+"\n",
			x(bin.From)+1, y(bin.Count), x(bin.To)-x(bin.From)-2, bottom-y(bin.Count), bin.From, bin.To, bin.Count)
	}
}

// String returns the duration with about four digits, for example "62ms" or "6h9m22s".
func (s Seconds) String() string {
	const most = 9e15 // what a time.Duration can hold, in microseconds
	d := time.Duration(max(-most, min(float64(s)*1e6, most))) * time.Microsecond
	if d.Abs() >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
