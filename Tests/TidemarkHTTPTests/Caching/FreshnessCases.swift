/// Cases of how long a response serves: RFC 9111, 4.2 and 5.2, RFC 5861, RFC 8246.
enum FreshnessCases {
  private static let tag = ["ETag": "\"a\""]

  static let all: [CacheCase] = lifetimes + ages + requests + stale + offline

  private static let lifetimes: [CacheCase] = [
    CacheCase(
      "9111 5.2.2.1", "max-age serves to its last second", .say("max-age=60"), .fetch("1"),
      .wait(59), .hit("1")),
    CacheCase(
      "9111 4.2", "a response as old as its lifetime is stale", .say("max-age=60"), .fetch("1"),
      .wait(60), .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.2.2.1", "max-age=0 is asked about", .say("max-age=0", tag), .fetch("1"),
      .say(nil, tag, status: 304), .fetch("1", sent: ["if-none-match": "\"a\""])),
    CacheCase(
      "9111 5.2", "max-age in quotes means the same", .say("max-age=\"60\""), .fetch("1"),
      .hit("1")),
    CacheCase(
      "9111 4.2.1", "max-age that is no number is stale", .say("max-age=soon"), .fetch("1"),
      .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.1", "max-age below zero is stale", .say("max-age=-1"), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 1.2.2", "max-age beyond all numbers serves for long",
      .say("max-age=99999999999999999999"), .fetch("1"), .wait(100_000_000), .hit("1")),
    CacheCase(
      "9111 4.2.1", "the first of two max-age counts", .say("max-age=1, max-age=60"), .fetch("1"),
      .wait(5), .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires serves until then", .say(nil, ["Expires": "@60"]), .fetch("1"),
      .wait(59), .hit("1")),
    CacheCase(
      "9111 5.3", "Expires that has passed is stale", .say(nil, ["Expires": "@-60"]), .fetch("1"),
      .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires: 0 is stale", .say(nil, ["Expires": "0"]), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 5.3", "max-age overrides Expires", .say("max-age=60", ["Expires": "@-60"]),
      .fetch("1"), .wait(30), .hit("1")),
    CacheCase(
      "9111 5.3", "a short max-age overrides Expires", .say("max-age=1", ["Expires": "@600"]),
      .fetch("1"), .wait(2), .say(nil), .fetch("2")),
    CacheCase(
      "9110 5.6.7", "Expires in the form of RFC 850 is read",
      .say(nil, ["Expires": "Friday, 01-Jan-27 00:00:00 GMT"]), .fetch("1"), .hit("1")),
    CacheCase(
      "9110 5.6.7", "Expires in the form of asctime is read",
      .say(nil, ["Expires": "Fri Jan  1 00:00:00 2027"]), .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.3", "Expires in the year 0 is stale",
      .say(nil, ["Expires": "Sat, 01 Jan 0000 00:00:00 GMT"]), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires with a year of two digits is stale",
      .say(nil, ["Expires": "Fri, 01 Jan 27 00:00:00 GMT"]), .fetch("1"), .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires with two spaces is stale",
      .say(nil, ["Expires": "Fri,  01 Jan 2027 00:00:00 GMT"]), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires in another zone is stale",
      .say(nil, ["Expires": "Fri, 01 Jan 2027 00:00:00 UTC"]), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 5.3", "Expires with a day of one digit is stale",
      .say(nil, ["Expires": "Fri, 1 Jan 2027 00:00:00 GMT"]), .fetch("1"), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 4.2.1", "max-age with a fraction is stale", .say("max-age=0.5"), .fetch("1"),
      .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.2", "a tenth of the time since the change serves",
      .say(nil, ["Last-Modified": "@-1000"]), .fetch("1"), .wait(99), .hit("1")),
    CacheCase(
      "9111 4.2.2", "more than a tenth of the time since the change does not serve",
      .say(nil, ["Last-Modified": "@-1000"]), .fetch("1"), .wait(100), .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.2", "a guess is a day at most", .say(nil, ["Last-Modified": "@-99999999"]),
      .fetch("1"), .wait(86_400), .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.2", "nothing is guessed where the response says it",
      .say("max-age=1", ["Last-Modified": "@-100000"]), .fetch("1"), .wait(2), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 4.2.2", "a change in the future serves for no time",
      .say(nil, ["Last-Modified": "@1000"]), .fetch("1"), .say(nil), .fetch("2")),
  ]

  private static let ages: [CacheCase] = [
    CacheCase(
      "9111 5.1", "Age counts", .say("max-age=60", ["Age": "50"]), .fetch("1"), .wait(9),
      .hit("1", gets: ["age": "59"])),
    CacheCase(
      "9111 5.1", "Age beyond the lifetime is stale", .say("max-age=60", ["Age": "60"]),
      .fetch("1"), .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.1", "Age that is no number is passed over", .say("max-age=60", ["Age": "x"]),
      .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.1", "Age beyond all numbers is stale",
      .say("max-age=60", ["Age": "99999999999999999999"]), .fetch("1"), .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.3", "an old Date counts as age", .say("max-age=60", ["Date": "@-50"]),
      .fetch("1"), .wait(9), .hit("1", gets: ["age": "59"])),
    CacheCase(
      "9111 4.2.3", "an old Date makes stale", .say("max-age=60", ["Date": "@-60"]), .fetch("1"),
      .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.3", "a Date in the future is no age", .say("max-age=60", ["Date": "@500"]),
      .fetch("1"), .wait(59), .hit("1", gets: ["age": "59"])),
    CacheCase(
      "9110 6.6.1", "without Date the time of arrival counts", .say("max-age=60", ["Date": "-"]),
      .fetch("1"), .wait(59), .hit("1", gets: ["age": "59"])),
    CacheCase(
      "9111 5.1", "an answer from the cache tells its age", .say("max-age=60"), .fetch("1"),
      .wait(7), .hit("1", gets: ["age": "7"])),
    CacheCase(
      "9211 2", "an answer from the cache says so", .say("max-age=60"), .fetch("1"), .wait(10),
      .hit("1", gets: ["cache-status": "Tidemark; hit; ttl=50"])),
    CacheCase(
      "9211 2", "an answer from the server says so", .say("max-age=60"),
      .fetch("1", gets: ["cache-status": "Tidemark; fwd=uri-miss; fwd-status=200; stored"])),
    CacheCase(
      "9111 4.2.3", "a clock that was set ahead makes stale", .say("max-age=60"), .fetch("1"),
      .jump(3_600), .say(nil), .fetch("2")),
    CacheCase(
      "9111 4.2.3", "a clock that was set back makes nothing serve for ever", .say("max-age=60"),
      .fetch("1"), .jump(-3_600), .say(nil), .fetch("2")),
  ]

  private static func asks(_ control: String) -> [String: String] { ["Cache-Control": control] }

  private static let requests: [CacheCase] = [
    CacheCase(
      "9111 5.2.1.1", "max-age of a request takes nothing older", .say("max-age=60"), .fetch("1"),
      .wait(10), .hit("1", asks("max-age=10")), .wait(1), .say(nil),
      .fetch("2", asks("max-age=10"))),
    CacheCase(
      "9111 5.2.1.1", "max-age=0 of a request asks", .say("max-age=60", tag), .fetch("1"),
      .wait(1), .say("max-age=60", tag, status: 304),
      .fetch("1", asks("max-age=0"), sent: ["if-none-match": "\"a\""])),
    CacheCase(
      "9111 5.2.1.2", "max-stale without a number takes what is stale", .say("max-age=1"),
      .fetch("1"), .wait(5_000), .hit("1", asks("max-stale"))),
    CacheCase(
      "9111 5.2.1.2", "max-stale takes what is stale for so long", .say("max-age=1"), .fetch("1"),
      .wait(11), .hit("1", asks("max-stale=10")), .wait(1), .say(nil),
      .fetch("2", asks("max-stale=10"))),
    CacheCase(
      "9111 5.2.1.2", "max-stale counts from an Expires that had passed",
      .say(nil, ["Expires": "@-60"]), .fetch("1"), .wait(1), .hit("1", asks("max-stale=61")),
      .say(nil), .fetch("2", asks("max-stale=60"))),
    CacheCase(
      "9111 5.2.2.2", "must-revalidate overrides max-stale", .say("max-age=1, must-revalidate"),
      .fetch("1"), .wait(5), .say(nil), .fetch("2", asks("max-stale"))),
    CacheCase(
      "9111 5.2.2.4", "no-cache overrides max-stale", .say("max-age=60, no-cache"), .fetch("1"),
      .say(nil), .fetch("2", asks("max-stale"))),
    CacheCase(
      "9111 5.2.1.3", "min-fresh takes what stays fresh for so long", .say("max-age=60"),
      .fetch("1"), .wait(50), .hit("1", asks("min-fresh=10")), .wait(1), .say(nil),
      .fetch("2", asks("min-fresh=10"))),
    CacheCase(
      "9111 5.2.1.4", "no-cache of a request asks", .say("max-age=60", tag), .fetch("1"),
      .say("max-age=60", tag, status: 304),
      .fetch("1", asks("no-cache"), sent: ["if-none-match": "\"a\""])),
    CacheCase(
      "9111 5.4", "Pragma: no-cache of a request asks", .say("max-age=60"), .fetch("1"),
      .say("max-age=60"), .fetch("2", ["Pragma": "no-cache"])),
    CacheCase(
      "9111 5.4", "Pragma beside Cache-Control is passed over", .say("max-age=60"), .fetch("1"),
      .hit("1", ["Pragma": "no-cache", "Cache-Control": "max-stale=1"])),
    CacheCase(
      "9111 5.4", "Pragma of a response says nothing", .say("max-age=60", ["Pragma": "no-cache"]),
      .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.1.7", "only-if-cached never asks", .hit("", asks("only-if-cached"), status: 504)),
    CacheCase(
      "9111 5.2.1.7", "only-if-cached takes what is fresh", .say("max-age=60"), .fetch("1"),
      .hit("1", asks("only-if-cached")), .wait(60), .hit("", asks("only-if-cached"), status: 504)),
    CacheCase(
      "9111 5.2.1.7", "only-if-cached with max-stale takes what is there", .say("max-age=1"),
      .fetch("1"), .wait(60), .hit("1", asks("only-if-cached, max-stale"))),
    CacheCase(
      "9111 5.2.2.4", "no-cache of a response asks each time", .say("max-age=60, no-cache", tag),
      .fetch("1"), .say(nil, tag, status: 304), .fetch("1", sent: ["if-none-match": "\"a\""])),
    CacheCase(
      "9111 5.2.2.4", "no-cache with names of fields asks each time",
      .say("max-age=60, no-cache=\"Set-Cookie\"", tag), .fetch("1"), .say(nil, tag, status: 304),
      .fetch("1")),
    CacheCase(
      "9111 5.2.2.2", "must-revalidate serves what is fresh", .say("max-age=60, must-revalidate"),
      .fetch("1"), .wait(30), .hit("1")),
    CacheCase(
      "8246 2", "what is immutable is not asked about while fresh",
      .say("max-age=60, immutable", tag), .fetch("1"), .wait(10), .hit("1", asks("max-age=0"))),
    CacheCase(
      "8246 2", "what is immutable is asked about once stale", .say("max-age=60, immutable", tag),
      .fetch("1"), .wait(60), .say("max-age=60, immutable", tag, status: 304), .fetch("1")),
    CacheCase(
      "8246 2", "what is immutable is asked about when no-cache says so",
      .say("max-age=60, immutable", tag), .fetch("1"),
      .say("max-age=60, immutable", tag, status: 304), .fetch("1", asks("no-cache"))),
  ]

  private static let stale: [CacheCase] = [
    CacheCase(
      "5861 3", "stale-while-revalidate serves and asks",
      .say("max-age=1, stale-while-revalidate=60"), .fetch("1"), .wait(5), .say("max-age=60"),
      .ask(CacheStep.Asked(status: 200, body: "1")), .settle, .hit("2")),
    CacheCase(
      "5861 3", "stale-while-revalidate ends", .say("max-age=1, stale-while-revalidate=60"),
      .fetch("1"), .wait(62), .say(nil), .fetch("2")),
    CacheCase(
      "5861 3", "must-revalidate overrides stale-while-revalidate",
      .say("max-age=1, stale-while-revalidate=60, must-revalidate"), .fetch("1"), .wait(5),
      .say(nil), .fetch("2")),
    CacheCase(
      "5861 3", "max-age of a request overrides stale-while-revalidate",
      .say("max-age=1, stale-while-revalidate=60"), .fetch("1"), .wait(5), .say(nil),
      .fetch("2", asks("max-age=3"))),
    CacheCase(
      "5861 4", "stale-if-error serves in place of a 500", .say("max-age=1, stale-if-error=60"),
      .fetch("1"), .wait(5), .say(nil, status: 500), .fetch("1")),
    CacheCase(
      "5861 4", "stale-if-error serves in place of a 503", .say("max-age=1, stale-if-error=60"),
      .fetch("1"), .wait(5), .say(nil, status: 503), .fetch("1")),
    CacheCase(
      "5861 4", "stale-if-error serves in place of a broken connection",
      .say("max-age=1, stale-if-error=60"), .fetch("1"), .wait(5), .say(nil, status: 0),
      .fetch("1")),
    CacheCase(
      "5861 4", "stale-if-error ends", .say("max-age=1, stale-if-error=60"), .fetch("1"),
      .wait(62), .say(nil, status: 500), .fetch("2", status: 500)),
    CacheCase(
      "5861 4", "stale-if-error of a request serves", .say("max-age=1"), .fetch("1"), .wait(5),
      .say(nil, status: 502), .fetch("1", asks("stale-if-error=60"))),
    CacheCase(
      "5861 4", "stale-if-error is for errors of the server", .say("max-age=1, stale-if-error=60"),
      .fetch("1"), .wait(5), .say(nil, status: 404), .fetch("2", status: 404)),
    CacheCase(
      "5861 4", "must-revalidate overrides stale-if-error",
      .say("max-age=1, stale-if-error=60, must-revalidate"), .fetch("1"), .wait(5),
      .say(nil, status: 500), .fetch("2", status: 500)),
    CacheCase(
      "9111 4.3.3", "an error of the server goes through where nothing allows what is stale",
      .say("max-age=1"), .fetch("1"), .wait(5), .say(nil, status: 500), .fetch("2", status: 500),
      .say(nil), .fetch("3")),
  ]

  private static let offline: [CacheCase] = [
    CacheCase(
      "9111 4.2.4", "a cache that is offline serves what is stale", .say("max-age=1"), .fetch("1"),
      .wait(5_000), .offline, .hit("1")),
    CacheCase(
      "9111 5.2.2.2", "a cache that is offline does not serve what must be asked about",
      .say("max-age=1, must-revalidate"), .fetch("1"), .wait(5), .offline, .hit("", status: 504)),
    CacheCase(
      "9111 5.2.1.4", "a cache that is offline does not serve who wants it new",
      .say("max-age=60"), .fetch("1"), .offline, .hit("", asks("no-cache"), status: 504)),
    CacheCase(
      "9111 4.2.4", "a cache that is offline has nothing for what it never saw", .offline,
      .hit("", status: 504), .online, .say(nil), .fetch("1")),
    CacheCase(
      "9111 4.2.4", "a cache that is offline sends nothing that changes anything", .offline,
      .hit("", status: 504, method: "POST")),
    CacheCase(
      "9111 4.2.4", "a server that breaks off leaves what is stale", .say("max-age=1"),
      .fetch("1"), .wait(5_000), .say(nil, status: 0), .fetch("1")),
    CacheCase(
      "9111 5.2.2.2", "a server that breaks off leaves nothing that must be asked about",
      .say("max-age=1, must-revalidate"), .fetch("1"), .wait(5), .say(nil, status: 0),
      .fetch("", status: 0)),
  ]
}
