// The style sheet and the script of the report's page. Constants.
#pragma once

#include <string_view>

namespace lamina::tools {

inline constexpr std::string_view kReportStyle = R"css(
:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--edge:#e2e5eb;--ink:#171c28;--soft:#5d6678;--faint:#eef0f4;
--grid:#e8ebf0;--base:#b9c0cc;--c0:#2f63e0;--c1:#dd6b14;--c2:#0b9384;--c3:#b98a00;--c4:#8348dc;--c5:#d03a78;--c6:#4a9427;
--c7:#56708f;--mute:#c3c9d4;--bar-ink:#fff;--tip:#171c28;--tip-ink:#fff}
@media (prefers-color-scheme:dark){:root{--page:#0e1117;--card:#161b23;--edge:#272e3a;--ink:#e9edf4;--soft:#97a3b6;
--faint:#1d2430;--grid:#232a36;--base:#465062;--c0:#7ba4ff;--c1:#ff9d57;--c2:#3fcfbd;--c3:#ecc148;--c4:#b995ff;
--c5:#ff82b2;--c6:#86d05c;--c7:#93abc8;--mute:#3d4757;--bar-ink:#0e1117;--tip:#e9edf4;--tip-ink:#11151d}}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
.c6{--c:var(--c6)}.c7{--c:var(--c7)}.mute{--c:var(--mute)}.frame{--c:var(--base)}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
Arial,sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1160px;margin:0 auto;padding:36px 28px 56px}
header{display:flex;gap:18px;align-items:center;margin-bottom:26px}
header svg{flex:none;width:46px;height:46px}
h1{font-size:25px;line-height:1.2;letter-spacing:-.02em;margin:0;font-weight:650;overflow-wrap:anywhere}
header p{margin:4px 0 0;color:var(--soft);overflow-wrap:anywhere}
h2{font-size:17px;letter-spacing:-.01em;font-weight:650;margin:40px 0 12px}
h3{font-size:14px;font-weight:600;margin:0 0 12px}
h3 small,figcaption span{font-weight:400;color:var(--soft);font-size:12.5px;margin-left:8px}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:18px 20px;min-width:0;
box-shadow:0 1px 2px rgba(16,24,40,.04)}
.stack{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}.lead{display:grid;gap:16px;grid-template-columns:minmax(0,17fr) minmax(0,10fr)}
.cards{display:grid;grid-template-columns:repeat(var(--n),minmax(0,1fr));gap:14px}
.cards .card{padding:14px 16px}
.cards .label{color:var(--soft);font-size:12.5px}
.cards .big{font-size:25px;font-weight:650;letter-spacing:-.025em;line-height:1.3;white-space:nowrap}
.cards .big small,.cards .many small{font-size:.58em;font-weight:500;letter-spacing:0;color:var(--soft);margin-left:3px}
.cards .sub{color:var(--soft);font-size:12.5px;line-height:1.35}
.cards .many{display:flex;align-items:baseline;gap:8px;font-size:18px;letter-spacing:-.015em;line-height:1.55;white-space:nowrap}
.cards .many small{font-size:.72em}
.cards .many.best{font-weight:650}
i.thin{height:4px}i{display:inline-block;width:10px;height:10px;border-radius:3px;background:var(--c);flex:none}
.cards .many i{width:9px;height:9px;border-radius:50%;align-self:center}
.runs{display:flex;flex-wrap:wrap;gap:8px 22px;margin:0 0 16px}
.runs span{display:inline-flex;align-items:center;gap:8px;font-weight:550;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:16px}.grid .wide{grid-column:1/-1}
.on-narrow{display:none}figure{margin:0;position:relative}
figcaption{font-size:14px;margin-bottom:8px;display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 0}figcaption .legend{margin:0 0 0 auto}figcaption b{font-weight:600}
.chart>svg,.timeline>svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}
.axis .grid{stroke:var(--grid)}.axis .base{stroke:var(--base)}.axis line{stroke-width:1;vector-effect:non-scaling-stroke}
polyline{fill:none;stroke:var(--c);stroke-linejoin:round;stroke-linecap:round}
polyline.line{stroke-width:2.2}polyline.dash{stroke-dasharray:5 5}polyline.raw{stroke-width:1;opacity:.3}
circle{fill:var(--c)}circle.raw{opacity:.3}circle.end{stroke:var(--card);stroke-width:1.5}
text.value{fill:var(--c);font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:12.5px;color:var(--soft);margin:0 0 12px}
.legend span{display:inline-flex;align-items:center;gap:7px}
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:7px 14px;font-size:13px;line-height:22px}
.bars .row{display:contents}.bars svg{display:block;width:100%;height:30px}.bars rect{fill:var(--c)}
.bars .who{max-width:230px;overflow-wrap:anywhere}.bars .end{color:var(--soft);font-variant-numeric:tabular-nums;text-align:right;white-space:nowrap}
.timeline{overflow-x:auto}.timeline>svg{min-width:760px}
.timeline g rect{fill:var(--c)}.timeline g.axis rect.lane{fill:var(--faint)}
.timeline g text{fill:var(--bar-ink);font-size:10.5px;pointer-events:none}.timeline g.frame text{fill:var(--ink)}
.timeline g.axis text{fill:var(--soft);font-size:12px}.timeline g.axis text.group{fill:var(--ink);font-weight:600}
.timeline .mark{stroke:var(--ink);stroke-width:1;stroke-dasharray:2 3;opacity:.55}.timeline .marked{font-size:11.5px}
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 40%,transparent) 0 0/28px 100%,linear-gradient(270deg,var(--card) 40%,
transparent) 100% 0/28px 100%,linear-gradient(90deg,var(--mute),transparent) 0 0/12px 100%,linear-gradient(270deg,var(--mute),transparent) 100% 0/12px 100%;
background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}
.scroll td{min-width:8ch}.scroll td.n{min-width:0}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 14px 6px 0;border-bottom:1px solid var(--edge);vertical-align:top}
tr:last-child td,tr:last-child th{border-bottom:0}
thead th{color:var(--soft);font-weight:500;font-size:12.5px;white-space:nowrap}
tbody th{font-weight:400;color:var(--soft);white-space:nowrap;width:1%;padding-right:32px}
td.n,th.n{text-align:right;white-space:nowrap}td:last-child,th:last-child{padding-right:0}
td{overflow-wrap:anywhere}tr.differs td{font-weight:600}
td.share{min-width:110px}td.share div{height:8px;border-radius:4px;background:var(--faint);margin-top:6px;overflow:hidden}
td.share b{display:block;height:100%;border-radius:4px;background:var(--c)}
td.name{overflow-wrap:normal}td.name,code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px}
pre{margin:0;padding:12px 14px;background:var(--faint);border-radius:8px;white-space:pre-wrap;overflow-wrap:anywhere;
line-height:1.55}
pre+pre{margin-top:8px}
.none,footer{color:var(--soft);font-size:13px}p.none{margin:4px 0}footer{margin-top:36px}
.pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:16px}.pair .more{display:none}.pair .rate{padding-right:0}.pair td.share{min-width:64px}
.cursor line{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3}.cursor circle{stroke:var(--card);stroke-width:1.5}
.tip{position:absolute;z-index:2;pointer-events:none;background:var(--tip);color:var(--tip-ink);font-size:12px;line-height:1.5;
border-radius:8px;padding:7px 10px;white-space:nowrap;font-variant-numeric:tabular-nums;box-shadow:0 4px 14px rgba(0,0,0,.22)}
.tip div{display:flex;align-items:center;gap:7px}.tip b{margin-left:auto;padding-left:14px;font-weight:600}
@media (max-width:1000px){.cards{grid-template-columns:repeat(3,minmax(0,1fr))}.pair{grid-template-columns:minmax(0,1fr)}}
@media (max-width:760px){main{padding:24px 16px 40px}.grid,.pair,.lead{grid-template-columns:minmax(0,1fr)}.chart text{font-size:13px}
.on-narrow{display:block}.on-broad{display:none}.bars{grid-template-columns:1fr max-content;gap:0 10px}.bars svg{grid-column:1/-1;order:1;margin-bottom:8px}
.bars .row{display:grid;grid-column:1/-1;grid-template-columns:subgrid}}
@media (max-width:480px){.cards{grid-template-columns:repeat(2,1fr);gap:10px}.card{padding:14px}.cards .big{font-size:21px}
h1{font-size:21px}.chart text{font-size:15px}}
@media (max-width:600px){.share,.bar{display:none}td,th{padding-right:10px}}
@media print{:root{--page:#fff;--card:#fff;--edge:#d5d9e0;--ink:#000;--soft:#444;--faint:#f2f3f5;--grid:#e8ebf0;--base:#999;
--c0:#2f63e0;--c1:#dd6b14;--c2:#0b9384;--c3:#b98a00;--c4:#8348dc;--c5:#d03a78;--c6:#4a9427;--c7:#56708f;--mute:#c3c9d4;
--bar-ink:#fff}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}main{max-width:none;padding:0}.card{box-shadow:none;break-inside:avoid}
h2{break-after:avoid}.cards{grid-template-columns:repeat(3,minmax(0,1fr))}.pair{grid-template-columns:minmax(0,1fr)}.timeline,.scroll{overflow:visible}.timeline>svg{min-width:0}
.tip,.cursor{display:none}}
)css";

// Values under the pointer: a line at the nearest point of every series, and a box with their numbers. Text is set as
// text, never as markup.
inline constexpr std::string_view kReportScript = R"js(
(()=>{const NS=document.createElementNS.bind(document,document.documentElement.querySelector('svg').namespaceURI);
for(const svg of document.querySelectorAll('svg.plot')){
const series=JSON.parse(svg.dataset.hover),[left,top,width,height]=svg.dataset.box.split(',').map(Number);
let mark=null,tip=null;const clear=()=>{mark?.remove();tip?.remove();mark=tip=null};
const place=(name,set,to)=>{const e=NS(name);for(const k in set)e.setAttribute(k,set[k]);to.append(e);return e};
const show=ev=>{const m=svg.getScreenCTM();if(!m)return;const at=(ev.clientX-m.e)/m.a;clear();
if(at<left-6||at>left+width+6)return;
const near=series.map(s=>[s,s.p.reduce((a,b)=>Math.abs(b[0]-at)<Math.abs(a[0]-at)?b:a)]);
const best=near.reduce((a,b)=>Math.abs(b[1][0]-at)<Math.abs(a[1][0]-at)?b:a)[1];
mark=place('g',{class:'cursor'},svg);place('line',{x1:best[0],x2:best[0],y1:top,y2:top+height},mark);
tip=document.createElement('div');tip.className='tip';
const head=document.createElement('div');head.textContent=Number(best[2].toPrecision(9)).toLocaleString('en')+' '+svg.dataset.xname;
tip.append(head);
for(const[s,p]of near){if(Math.abs(p[0]-best[0])>width/12)continue;
place('circle',{class:s.c,cx:p[0],cy:p[1],r:4.2},mark);
const row=document.createElement('div'),chip=document.createElement('i'),value=document.createElement('b');
chip.className=s.c;value.textContent=p[3];row.append(chip,s.n,value);tip.append(row)}
const fig=svg.parentNode,box=fig.getBoundingClientRect();fig.append(tip);
const x=m.a*best[0]+m.e-box.left,w=tip.offsetWidth;
tip.style.left=Math.max(0,x+14+w>box.width?x-w-14:x+14)+'px';tip.style.top=(m.d*top+m.f-box.top+4)+'px'};
svg.addEventListener('pointermove',show);svg.addEventListener('pointerdown',show);svg.addEventListener('pointerleave',clear)}})();
)js";

}  // namespace lamina::tools
