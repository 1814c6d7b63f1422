/// Cases of ranges and parts: RFC 9110, 14, and RFC 9111, 3.3 and 3.4.
enum RangeCases {
  static let all: [CacheCase] = ofWhole + kept + notKept + completed + offline

  private static let digits = "0123456789"
  private static let whole = CacheStep.say(
    "max-age=60",
    ["ETag": "\"a\"", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"], body: digits)

  private static func range(_ text: String, _ more: [String: String] = [:]) -> [String: String] {
    ["Range": "bytes=\(text)"].merging(more) { $1 }
  }

  /// A part as a server sends it.
  private static func part(
    _ body: String, at start: Int, of total: String = "10", _ control: String = "max-age=60",
    tag: String = "\"a\"", more: [String: String] = [:]
  ) -> CacheStep {
    let range = "bytes \(start)-\(start + body.utf8.count - 1)/\(total)"
    return .say(
      control, ["ETag": tag, "Content-Range": range].merging(more) { $1 }, status: 206, body: body)
  }

  private static func served(
    _ field: String, _ body: String, _ range: String, _ more: [String: String] = [:]
  ) -> CacheStep {
    .hit(
      body, Self.range(field, more), status: 206,
      gets: [
        "content-range": "bytes \(range)/10", "content-length": "\(body.utf8.count)",
        "etag": "\"a\"",
      ])
  }

  private static let ofWhole: [CacheCase] = [
    CacheCase(
      "9110 14.2", "a range of what is stored is served", whole, .fetch(digits),
      served("2-4", "234", "2-4"), served("0-0", "0", "0-0"), .hit(digits)),
    CacheCase(
      "9110 14.1.2", "a range without an end goes to the end", whole, .fetch(digits),
      served("7-", "789", "7-9"), served("0-", digits, "0-9")),
    CacheCase(
      "9110 14.1.2", "a range beyond the end goes to the end", whole, .fetch(digits),
      served("8-99", "89", "8-9")),
    CacheCase(
      "9110 14.1.2", "a range of the last bytes is served", whole, .fetch(digits),
      served("-2", "89", "8-9"), served("-99", digits, "0-9")),
    CacheCase(
      "9110 15.5.17", "a range behind the end has an answer of its own", whole, .fetch(digits),
      .hit("", range("10-"), status: 416, gets: ["content-range": "bytes */10"]),
      .hit("", range("-0"), status: 416, gets: ["content-range": "bytes */10"])),
    CacheCase(
      "9110 13.1.5", "If-Range of what is stored is a range", whole, .fetch(digits),
      served("2-4", "234", "2-4", ["If-Range": "\"a\""]),
      served("2-4", "234", "2-4", ["If-Range": "Thu, 01 Jan 2026 00:00:00 GMT"])),
    CacheCase(
      "9110 13.1.5", "If-Range of another content gets all", whole, .fetch(digits),
      .hit(digits, range("2-4", ["If-Range": "\"b\""])),
      .hit(digits, range("2-4", ["If-Range": "W/\"a\""])),
      .hit(digits, range("2-4", ["If-Range": "Fri, 02 Jan 2026 00:00:00 GMT"]))),
    CacheCase(
      "9110 14.2", "HEAD has no range", whole, .fetch(digits),
      .hit("", range("2-4"), method: "HEAD", gets: ["content-length": "10"])),
    CacheCase(
      "9110 14.2", "an error has no range", .say("max-age=60", status: 404, body: digits),
      .fetch(digits, status: 404), .hit(digits, range("2-4"), status: 404)),
    CacheCase(
      "9110 13.2.2", "who has what is stored gets a 304 for a range", whole, .fetch(digits),
      .hit("", range("2-4", ["If-None-Match": "\"a\""]), status: 304)),
    CacheCase(
      "9111 4.3.1", "a range of what is stale is asked about", whole, .fetch(digits), .wait(61),
      .say("max-age=60", ["ETag": "\"a\""], status: 304),
      .fetch(
        "234", range("2-4"), status: 206, sent: ["range": "bytes=2-4", "if-none-match": "\"a\""]),
      served("0-1", "01", "0-1")),
    CacheCase(
      "9111 4.3.3", "a part of another content replaces what is stored", whole, .fetch(digits),
      .wait(61), part("ccc", at: 2, tag: "\"b\""), .fetch("ccc", range("2-4"), status: 206),
      .hit("cc", range("3-4"), status: 206), .say(nil), .fetch("3")),
  ]

  private static let kept: [CacheCase] = [
    CacheCase(
      "9111 3.3", "a part is kept and serves ranges within it", part("234", at: 2),
      .fetch("234", range("2-4"), status: 206, sent: ["range": "bytes=2-4"]),
      served("2-4", "234", "2-4"), served("3-3", "3", "3-3")),
    CacheCase(
      "9111 3.4", "parts of one content serve what they have together", part("012", at: 0),
      .fetch("012", range("0-2"), status: 206), part("345", at: 3),
      .fetch("345", range("3-5"), status: 206), served("1-4", "1234", "1-4")),
    CacheCase(
      "9111 3.4", "parts that are all serve as the whole", part("56789", at: 5),
      .fetch("56789", range("5-"), status: 206), part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206),
      .hit(digits, gets: ["content-length": "10", "content-range": ""]),
      served("4-5", "45", "4-5")),
    CacheCase(
      "9111 4.3.1", "a part that is stale is asked about", part("234", at: 2),
      .fetch("234", range("2-4"), status: 206), .wait(61),
      .say("max-age=60", ["ETag": "\"a\""], status: 304),
      .fetch("34", range("3-4"), status: 206, sent: ["if-none-match": "\"a\""]),
      served("2-2", "2", "2-2")),
    CacheCase(
      "9111 4.1", "parts vary by fields", part("234", at: 2, more: ["Vary": "X-A"]),
      .fetch("234", range("2-4", ["X-A": "1"]), status: 206),
      part("xyz", at: 2, tag: "\"b\"", more: ["Vary": "X-A"]),
      .fetch("xyz", range("2-4", ["X-A": "2"]), status: 206),
      served("2-3", "23", "2-3", ["X-A": "1"]),
      .hit("xy", range("2-3", ["X-A": "2"]), status: 206)),
    CacheCase(
      "9111 4.4", "POST makes parts void", part("234", at: 2),
      .fetch("234", range("2-4"), status: 206), .say(nil), .fetch("2", method: "POST"),
      part("xyz", at: 2), .fetch("xyz", range("2-4"), status: 206)),
    CacheCase(
      "9111 3.4", "a part of another content makes the former ones void", part("012", at: 0),
      .fetch("012", range("0-2"), status: 206), part("ddd", at: 3, tag: "\"b\""),
      .fetch("ddd", range("3-5"), status: 206), part("ccc", at: 0, tag: "\"b\""),
      .fetch("ccc", range("0-2"), status: 206), .hit("cd", range("2-3"), status: 206)),
    CacheCase(
      "9111 4.3.5", "HEAD of another tag makes parts void", part("234", at: 2),
      .fetch("234", range("2-4"), status: 206), .wait(61),
      .say("max-age=60", ["ETag": "\"b\"", "Content-Length": "10"]), .fetch("", method: "HEAD"),
      part("xyz", at: 2, tag: "\"b\""), .fetch("xyz", range("2-4"), status: 206)),
  ]

  private static let notKept: [CacheCase] =
    [
      (
        "without a tag",
        CacheStep.say(
          "max-age=60", ["Content-Range": "bytes 2-4/10"], status: 206, body: "234")
      ),
      ("with a weak tag", part("234", at: 2, tag: "W/\"a\"")),
      ("of a content without a length", part("234", at: 2, of: "*")),
      ("that says no-store", part("234", at: 2, "no-store")),
      (
        "of another length than it says",
        part("234", at: 2, more: ["Content-Range": "bytes 2-5/10"])
      ),
      ("that goes beyond the end", part("234", at: 8)),
    ].map { name, step in
      CacheCase(
        "9111 3.3", "a part \(name) is not kept", step,
        .fetch("234", range("2-4"), status: 206), .say(nil), .fetch("2", range("2-4")))
    } + [
      CacheCase(
        "9111 3.3", "several ranges are the server's to answer", whole, .fetch(digits),
        .say(nil, status: 206), .fetch("2", range("0-0,2-3"), status: 206), .hit(digits)),
      CacheCase(
        "9110 14.1", "a range of another unit is the server's to answer", whole, .fetch(digits),
        .say(nil), .fetch("2", ["Range": "lines=1-2"])),
      CacheCase(
        "9110 15.5.17", "a 416 of the server leaves what is kept", part("234", at: 2),
        .fetch("234", range("2-4"), status: 206),
        .say(nil, ["Content-Range": "bytes */10"], status: 416),
        .fetch("2", range("7-8"), status: 416), served("2-4", "234", "2-4")),
    ]

  private static let completed: [CacheCase] = [
    CacheCase(
      "9111 3.4", "the rest of a range is asked for", part("234", at: 2),
      .fetch("234", range("2-4"), status: 206), part("567", at: 5),
      .fetch(
        "234567", range("2-7"), status: 206,
        sent: ["range": "bytes=5-7", "if-range": "\"a\"", "if-none-match": ""],
        gets: [
          "content-range": "bytes 2-7/10", "content-length": "6",
          "cache-status": "Tidemark; fwd=partial; fwd-status=206; stored",
        ]), served("2-7", "234567", "2-7")),
    CacheCase(
      "9111 3.4", "the rest of a content is asked for", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206), part("56789", at: 5),
      .fetch(
        digits, sent: ["range": "bytes=5-"],
        gets: ["content-length": "10", "content-range": ""]), .hit(digits)),
    CacheCase(
      "9111 3.4", "a content is asked for as a whole where its beginning is missing",
      part("789", at: 7), .fetch("789", range("7-"), status: 206), whole,
      .fetch(digits, sent: ["range": "", "if-range": ""]), .hit(digits)),
    CacheCase(
      "9111 3.4", "parts of another content are put together with nothing", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206),
      .say("max-age=60", ["ETag": "\"b\""], body: "abcdefghij"),
      .fetch("abcdefghij", range("0-8"), sent: ["if-range": "\"a\""]), .hit("abcdefghij")),
    CacheCase(
      "9111 3.4", "a server that overlooks If-Range is asked again", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206), part("fgh", at: 5, tag: "\"b\""),
      part("abcdefgh", at: 0, tag: "\"b\""),
      .fetch("abcdefgh", range("0-7"), status: 206, sent: ["range": "bytes=0-7", "if-range": ""]),
      .hit("gh", range("6-7"), status: 206)),
    CacheCase(
      "9111 3.4", "a server that answers another range is asked again", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206), part("34567", at: 3), part("01234567", at: 0),
      .fetch("01234567", range("0-7"), status: 206)),
    CacheCase(
      "9111 3.4", "a range of which less comes than was asked for says so", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206), part("56", at: 5),
      .fetch(
        "0123456", range("0-8"), status: 206, gets: ["content-range": "bytes 0-6/10"])),
    CacheCase(
      "9111 4.3.1", "a reader's own condition is about all of the content", part("01234", at: 0),
      .fetch("01234", range("0-4"), status: 206), .say(nil, ["ETag": "\"b\""], status: 304),
      .fetch("", range("0-8", ["If-None-Match": "\"b\""]), status: 304)),
  ]

  private static let offline: [CacheCase] = [
    CacheCase(
      "9111 4.2.4", "a cache that is offline serves ranges of what is stored", whole,
      .fetch(digits), .wait(100), .offline, served("2-4", "234", "2-4"),
      .hit("", range("10-"), status: 416)),
    CacheCase(
      "9111 4.2.4", "a cache that is offline serves the beginning of a range",
      part("01234", at: 0), .fetch("01234", range("0-4"), status: 206), .wait(100), .offline,
      served("3-", "34", "3-4"), served("0-9", "01234", "0-4")),
    CacheCase(
      "9111 4.2.4", "a cache that is offline has no part for who wants another, or all",
      part("234", at: 2), .fetch("234", range("2-4"), status: 206), .offline,
      .hit("", range("5-"), status: 504), .hit("", range("0-"), status: 504),
      .hit("", status: 504)),
    CacheCase(
      "5861 4", "stale-if-error serves the beginning of a range",
      part("01234", at: 0, "max-age=1, stale-if-error=60"),
      .fetch("01234", range("0-4"), status: 206), .wait(2), .say(nil, status: 503),
      .fetch("34", range("3-8"), status: 206)),
  ]
}
