package tokens

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// sample is a kind of text that runs send to models.
type sample struct{ name, text string }

// samples gives the same texts each time.
func samples() []sample {
	source, err := os.ReadFile("cut.go")
	if err != nil {
		panic(err) // the tests run in the package's folder
	}
	return []sample{
		{"English", `A customer wrote to us on Tuesday. She had ordered a lamp, order A1001, and it arrived with a broken shade; the
driver would not take it back. I've looked at the photographs, and the damage clearly happened on the way. Please refund
the full amount (49.90 EUR) before Friday, apologise politely, and don't promise a replacement: the manufacturer has
discontinued that model. If anything is unclear, ask the warehouse before you answer her.`},
		{"German", `Eine Kundin hat uns am Dienstag geschrieben. Sie hatte eine Lampe bestellt, und der Lampenschirm war bei der Lieferung
zerbrochen; der Fahrer wollte sie nicht zurücknehmen. Bitte überweisen Sie den vollen Betrag vor Freitag, entschuldigen Sie
sich höflich und versprechen Sie keinen Ersatz: Der Hersteller führt dieses Modell nicht mehr.`},
		{"French", `Une cliente nous a écrit mardi. Elle avait commandé une lampe, et l'abat-jour était cassé à la livraison ; le chauffeur
n'a pas voulu la reprendre. Merci de rembourser la totalité du montant avant vendredi, de présenter nos excuses et de ne pas
promettre de remplacement : le fabricant a arrêté ce modèle.`},
		{"Polish", `Klientka napisała do nas we wtorek. Zamówiła lampę, a abażur był stłuczony przy dostawie; kierowca nie chciał jej
zabrać z powrotem. Proszę zwrócić pełną kwotę przed piątkiem, grzecznie przeprosić i nie obiecywać wymiany, ponieważ
producent wycofał ten model ze sprzedaży.`},
		{"Vietnamese", `Một khách hàng đã viết cho chúng tôi hôm thứ Ba. Cô ấy đã đặt một chiếc đèn, và chụp đèn bị vỡ khi giao hàng. Vui lòng
hoàn lại toàn bộ số tiền trước thứ Sáu, xin lỗi lịch sự và đừng hứa đổi hàng mới.`},
		{"Russian", `Во вторник нам написала покупательница. Она заказала лампу, но абажур оказался разбит при доставке; водитель
отказался забрать её обратно. Пожалуйста, верните полную сумму до пятницы, вежливо извинитесь и не обещайте замену:
производитель больше не выпускает эту модель.`},
		{"Greek", `Μια πελάτισσα μας έγραψε την Τρίτη. Είχε παραγγείλει ένα φωτιστικό και το καπέλο του ήταν σπασμένο κατά την παράδοση.
Παρακαλώ επιστρέψτε ολόκληρο το ποσό πριν από την Παρασκευή και ζητήστε ευγενικά συγγνώμη.`},
		{"Arabic", `كتبت إلينا إحدى العميلات يوم الثلاثاء. كانت قد طلبت مصباحا ووصل الغطاء مكسورا عند التسليم. يرجى إعادة المبلغ كاملا قبل
يوم الجمعة والاعتذار بأدب وعدم الوعد باستبداله.`},
		{"Hindi", `एक ग्राहक ने हमें मंगलवार को लिखा। उसने एक लैंप मंगवाया था और डिलीवरी के समय उसका शेड टूटा हुआ था। कृपया शुक्रवार से पहले पूरी राशि
वापस करें और विनम्रता से माफी मांगें।`},
		{"Thai", `ลูกค้ารายหนึ่งเขียนถึงเราเมื่อวันอังคาร เธอสั่งโคมไฟและโป๊ะแตกตอนส่งของ กรุณาคืนเงินเต็มจำนวนก่อนวันศุกร์และขอโทษอย่างสุภาพ`},
		{"Chinese", `一位顾客星期二给我们写信。她订购了一盏台灯，订单号是A1001，送到时灯罩已经碎了，司机不肯把它带回去。我看过照片，损坏显然是在运输途中发生的。
请在星期五之前全额退款（49.90欧元），礼貌地道歉，不要承诺换货，因为厂家已经停产这个型号。如果有什么不清楚的地方，请先问仓库再回复她。`},
		{"traditional Chinese", `一位顧客星期二寫信給我們。她訂購了一盞檯燈，送到時燈罩已經碎了，司機不肯把它帶回去。請在星期五之前全額退款，禮貌地道歉，
不要承諾換貨，因為廠家已經停產這個型號。學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？`},
		{"Japanese", `火曜日にお客様からご連絡がありました。ランプをご注文になりましたが、お届けの際にシェードが割れていたそうです。金曜日までに全額を返金し、
丁寧にお詫びしてください。このモデルは製造中止のため、交換品はお約束しないでください。`},
		{"Korean", `화요일에 고객님께서 연락을 주셨습니다. 램프를 주문하셨는데 배송 당시 전등갓이 깨져 있었다고 합니다. 금요일 전까지 전액 환불해 드리고
정중하게 사과해 주세요. 이 모델은 단종되었으므로 교환을 약속하지 마세요.`},
		{"mixed", `User 张伟 wrote: "请帮我查一下订单 A1001 的状态, thanks!" → lookup_order({"order_id": "A1001"}) gave {"status": "paid", "cents": 4990}.
退款金额: 49.90 EUR ✅ (see https://shop.example.com/orders/A1001?lang=zh-CN).`},
		{"Go", string(source)},
		{"SQL", `SELECT o.id, o.item, SUM(p.cents) AS paid FROM orders o LEFT JOIN payments p ON p.order_id = o.id
WHERE o.status IN ('paid', 'refunded') AND o.created_at >= '2026-01-01' GROUP BY o.id HAVING SUM(p.cents) > 1000 ORDER BY 3 DESC;`},
		{"YAML", `states:
  carry_out:
    handler: execute
    view: {vars: [order_id, todo], attempts: true, budget: {system: 500, task: 2000}}
    limits: {visits: 3, turns: 8, time: 2m}
    transitions:
      success: done
      fail: {to: colleague, say: I could not finish this myself.}`},
		{"compact JSON", orders(`{"id":%d,"item":"lamp no. %d","cents":%d,"tags":["new","sale"],"paid":true,"at":"2026-01-%02dT10:%02d:00Z"},`)},
		{"indented JSON", orders("  {\n    \"id\": %d,\n    \"item\": \"lamp no. %d\",\n    \"cents\": %d,\n    \"paid\": null,\n    \"at\": \"2026-01-%02dT10:%02d:00Z\"\n  },\n")},
		{"JSON Schema", `{"type":"object","properties":{"order_id":{"type":"string","pattern":"^A[0-9]{4}$","description":"The order number"},
"reason":{"type":"string","enum":["broken","late","unwanted"]}},"required":["order_id"],"additionalProperties":false}`},
		{"table of numbers", orders("%d,%d,%d.25,0.%02d,%02d\n")},
		{"Markdown table", orders("| %d | lamp **no. %d** | `%d` | 2026-01-%02d | %02d |\n")},
		{"hex log", lines(func(r *rand.Rand) string {
			return fmt.Sprintf("%08x  %016x %016x  |................|", r.Uint32(), r.Uint64(), r.Uint64())
		})},
		{"hashes", lines(func(r *rand.Rand) string {
			return fmt.Sprintf("%016x%016x  src/file%d.go", r.Uint64(), r.Uint64(), r.IntN(99))
		})},
		{"ids", lines(func(r *rand.Rand) string {
			return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<16), r.IntN(1<<16), r.Uint64()>>16)
		})},
		{"server log", lines(func(r *rand.Rand) string {
			return fmt.Sprintf(`2026-01-02T03:04:%02d.%03dZ ERROR [worker-%d] request_id=%08x POST /v1/orders/A%04d 503 took=%dms: connection reset by peer`,
				r.IntN(60), r.IntN(1000), r.IntN(8), r.Uint32(), r.IntN(10000), r.IntN(5000))
		})},
		{"base64", base64.StdEncoding.EncodeToString(noise(3000))},
		{"base64 lines", lines(func(r *rand.Rand) string { return base64.URLEncoding.EncodeToString(noise(45 + r.IntN(10))) })},
		{"emoji", "Great news 🎉🎉 your order shipped 🚀📦! Thanks 🙏🏽 from all of us 👩‍👩‍👧‍👦 ❤️ 🇩🇪🇫🇷 ✅ 👍🏿 😀😂🥲🫠🦄"},
		{"rules and boxes", strings.Repeat("----------------------------------------\n┌────────┬──────┐\n│ name   │    n │\n└────────┴──────┘\n========\n", 5)},
	}
}

// orders writes a line per order: id, number, cents, day, minute.
func orders(format string) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		fmt.Fprintf(&b, format, i+1, r.IntN(500), r.IntN(100_000), 1+r.IntN(28), r.IntN(60))
	}
	return b.String()
}

func lines(line func(r *rand.Rand) string) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		b.WriteString(line(r) + "\n")
	}
	return b.String()
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}
