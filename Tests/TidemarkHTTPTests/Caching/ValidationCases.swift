/// Cases of asking whether a response is still right: RFC 9111, 3.2 and 4.3.
enum ValidationCases {
  private static let tag = ["ETag": "\"a\""]

  static let all: [CacheCase] = asking + answers + renewed + codings + givenUp + conditions + heads

  private static let asking: [CacheCase] = [
    CacheCase(
      "9111 4.3.1", "a tag is asked about", .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=60", tag, status: 304), .fetch("1", sent: ["if-none-match": "\"a\""]),
      .hit("1")),
    CacheCase(
      "9111 4.3.1", "a weak tag is asked about", .say("max-age=1", ["ETag": "W/\"a\""]),
      .fetch("1"), .wait(2), .say("max-age=60", ["ETag": "W/\"a\""], status: 304),
      .fetch("1", sent: ["if-none-match": "W/\"a\""])),
    CacheCase(
      "9111 4.3.1", "a date of change is asked about",
      .say("max-age=1", ["Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]), .fetch("1"), .wait(2),
      .say("max-age=60", status: 304),
      .fetch("1", sent: ["if-modified-since": "Thu, 01 Jan 2026 00:00:00 GMT"]), .hit("1")),
    CacheCase(
      "9111 4.3.1", "tag and date are asked about together",
      .say(
        "max-age=1", ["ETag": "\"a\"", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]),
      .fetch("1"), .wait(2), .say("max-age=60", tag, status: 304),
      .fetch(
        "1",
        sent: [
          "if-none-match": "\"a\"", "if-modified-since": "Thu, 01 Jan 2026 00:00:00 GMT",
        ])),
    CacheCase(
      "9111 4.3.1", "nothing is asked about without a validator", .say("max-age=1"), .fetch("1"),
      .wait(2), .say("max-age=60"),
      .fetch("2", sent: ["if-none-match": "", "if-modified-since": ""]), .hit("2")),
    CacheCase(
      "9110 8.8.3", "a tag without quotes is not asked about", .say("max-age=1", ["ETag": "a"]),
      .fetch("1"), .wait(2), .say(nil), .fetch("2", sent: ["if-none-match": ""])),
    CacheCase(
      "9110 8.8.2", "a date of change that is none is not asked about",
      .say("max-age=1", ["Last-Modified": "yesterday"]), .fetch("1"), .wait(2), .say(nil),
      .fetch("2", sent: ["if-modified-since": ""])),
  ]

  private static let answers: [CacheCase] = [
    CacheCase(
      "9111 4.3.3", "a whole response replaces what is stored", .say("max-age=1", tag),
      .fetch("1"), .wait(2), .say("max-age=60", ["ETag": "\"b\""]), .fetch("2"), .hit("2")),
    CacheCase(
      "9111 4.3.4", "a 304 makes fresh", .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=10", tag, status: 304), .fetch("1"), .wait(9), .hit("1", gets: ["age": "9"]),
      .wait(1), .say(nil), .fetch("3")),
    CacheCase(
      "9111 3.2", "a 304 changes fields", .say("max-age=1", ["ETag": "\"a\"", "X-A": "1"]),
      .fetch("1"), .wait(2), .say("max-age=60", ["ETag": "\"a\"", "X-A": "2"], status: 304),
      .fetch("1", gets: ["x-a": "2"]), .hit("1", gets: ["x-a": "2"])),
    CacheCase(
      "9111 3.2", "a 304 adds fields", .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=60", ["ETag": "\"a\"", "X-B": "2"], status: 304), .fetch("1"),
      .hit("1", gets: ["x-b": "2"])),
    CacheCase(
      "9111 3.2", "a 304 leaves fields that it does not name",
      .say("max-age=60, no-cache", ["ETag": "\"a\"", "X-A": "1"]), .fetch("1"),
      .say(nil, tag, status: 304), .fetch("1", gets: ["x-a": "1"])),
    CacheCase(
      "9111 3.2", "a 304 does not change the length", .say("max-age=1", tag, body: "four"),
      .fetch("four"), .wait(2),
      .say("max-age=60", ["ETag": "\"a\"", "Content-Length": "0"], status: 304), .fetch("four"),
      .hit("four", gets: ["content-length": "4"])),
    CacheCase(
      "9111 3.2", "a 304 that forbids to serve is heeded", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("max-age=60, no-cache", tag, status: 304), .fetch("1"), .say(nil),
      .fetch("3")),
    CacheCase(
      "9111 4.3.4", "a 304 without a tag answers what was asked", .say("max-age=1", tag),
      .fetch("1"), .wait(2), .say("max-age=60", status: 304), .fetch("1"), .hit("1")),
    CacheCase(
      "9111 4.3.4", "a 304 of another tag is asked again without condition",
      .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=60", ["ETag": "\"other\""], status: 304), .say("max-age=60"),
      .fetch("3", sent: ["if-none-match": ""]), .hit("3")),
    CacheCase(
      "9111 4.3.4", "an answer without condition that must not be kept gives up what was stored",
      .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=60", ["ETag": "\"other\""], status: 304), .say("no-store"), .fetch("3"),
      .say(nil), .fetch("4", ["Cache-Control": "max-stale"])),
    CacheCase(
      "9111 4.3.4", "an answer without condition for nobody else gives up what was stored",
      .say("max-age=1", tag), .fetch("1"), .wait(2),
      .say("max-age=60", ["ETag": "\"other\""], status: 304), .say("max-age=60", ["Vary": "*"]),
      .fetch("3"), .say(nil), .fetch("4", ["Cache-Control": "max-stale"])),
    CacheCase(
      "9111 4.3.4", "an error without condition is spared by what allows it",
      .say("max-age=1, stale-if-error=60", tag), .fetch("1"), .wait(2),
      .say("max-age=60", ["ETag": "\"other\""], status: 304), .say(nil, status: 503),
      .fetch("1")),
    CacheCase(
      "9111 4.3.4", "a weak tag of a 304 says the same of a strong one", .say("max-age=1", tag),
      .fetch("1"), .wait(2), .say("max-age=60", ["ETag": "W/\"a\""], status: 304), .fetch("1"),
      .hit("1")),
    CacheCase(
      "9211 2", "an answer that was asked about says so", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("max-age=60", tag, status: 304),
      .fetch("1", gets: ["cache-status": "Tidemark; fwd=stale; fwd-status=304"])),
    CacheCase(
      "9111 4.2.3", "an age of before is not the age after a 304",
      .say("max-age=60", ["ETag": "\"a\"", "Age": "60"]), .fetch("1"),
      .say("max-age=60", tag, status: 304), .fetch("1"), .hit("1", gets: ["age": "0"])),
  ]

  private static let modified = ["Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]
  private static let german = ["Accept-Language": "de"]
  private static let english = ["Accept-Language": "en"]

  private static func with(_ name: String, _ value: String) -> [String: String] {
    ["ETag": "\"a\"", name: value]
  }

  /// Fresh fields, of which all rules hold.
  private static let renewed: [CacheCase] = [
    CacheCase(
      "9111 3.2", "a 304 that names fields in Vary serves requests with these",
      .say("max-age=0", tag), .fetch("1", english),
      .say("max-age=60", with("Vary", "Accept-Language"), status: 304), .fetch("1", english),
      .hit("1", english), .say("max-age=60", with("Vary", "Accept-Language")),
      .fetch("3", german), .hit("1", english), .hit("3", german)),
    CacheCase(
      "9111 3.2", "a 304 that names more fields in Vary serves requests with all of them",
      .say("max-age=0", with("Vary", "X-A")), .fetch("1", ["X-A": "1", "X-B": "1"]),
      .say("max-age=60", with("Vary", "X-A, X-B"), status: 304),
      .fetch("1", ["X-A": "1", "X-B": "1"]), .hit("1", ["X-A": "1", "X-B": "1"]), .say(nil),
      .fetch("3", ["X-A": "1", "X-B": "2"])),
    CacheCase(
      "9111 3.2", "a 304 that says Vary: * is never served", .say("max-age=0", tag), .fetch("1"),
      .say("max-age=60", with("Vary", "*"), status: 304), .fetch("1"), .say(nil), .fetch("3")),
    CacheCase(
      "9111 3.2", "a 304 that says no-store gives up what was kept", .say(nil, modified),
      .fetch("1"), .wait(90_000), .say("no-store", modified, status: 304), .fetch("1"), .offline,
      .hit("", status: 504)),
    CacheCase(
      "9111 3.2", "a 304 with a status that must be understood gives up what was kept",
      .say("max-age=0", tag, status: 599), .fetch("1", status: 599),
      .say("max-age=60, must-understand", tag, status: 304), .fetch("1", status: 599), .offline,
      .hit("", status: 504)),
    CacheCase(
      "9111 5.2.1.5", "a 304 to a request with no-store leaves what was kept",
      .say("max-age=0", tag), .fetch("1"), .say("max-age=60", tag, status: 304),
      .fetch("1", ["Cache-Control": "no-store"]), .offline, .hit("1")),
    CacheCase(
      "9111 4.3.5", "HEAD that names fields in Vary serves requests with these",
      .say("max-age=0", tag), .fetch("1", english),
      .say("max-age=60", with("Vary", "Accept-Language")), .fetch("", english, method: "HEAD"),
      .hit("1", english), .say(nil), .fetch("3", german)),
    CacheCase(
      "9111 4.3.5", "HEAD that says no-store gives up what was kept", .say("max-age=0", tag),
      .fetch("1"), .say("no-store", tag), .fetch("", method: "HEAD"), .offline,
      .hit("", status: 504)),
    CacheCase(
      "9110 6.6.1", "a 304 without Date is as old as its arrival", .say("max-age=60", tag),
      .fetch("1"), .wait(500), .say("max-age=60", with("Date", "-"), status: 304), .fetch("1"),
      .wait(59), .hit("1", gets: ["age": "59"])),
    CacheCase(
      "9110 6.6.1", "a 304 without Date is guessed to be fresh from its arrival on",
      .say(nil, with("Last-Modified", "@-1000")), .fetch("1"), .wait(500),
      .say(nil, with("Date", "-"), status: 304), .fetch("1"), .wait(149), .hit("1")),
    CacheCase(
      "9110 6.6.1", "HEAD without Date is as old as its arrival", .say("max-age=60", tag),
      .fetch("1"), .wait(500), .say("max-age=60", with("Date", "-")), .fetch("", method: "HEAD"),
      .wait(59), .hit("1")),
  ]

  /// Tags of one content, which a server makes weak, or longer, when it compresses.
  private static let codings: [CacheCase] =
    [
      ("W/\"a\"", "-", "\"a\""), ("\"a\"", "gzip", "W/\"a\""), ("W/\"x-y\"", "br", "\"x-y\""),
      ("\"a-gzip\"", "gzip", "\"a\""), ("W/\"a-br\"", "BR", "\"a\""),
      ("\"1-2-zstd\"", "zstd", "W/\"1-2\""),
    ].map { stored, coding, told in
      CacheCase(
        "9110 8.8.3", "a 304 with \(told) is about \(stored), coding \(coding)",
        .say("max-age=1", ["ETag": stored, "Content-Encoding": coding]), .fetch("1"), .wait(2),
        .say("max-age=1", ["ETag": told], status: 304), .fetch("1"), .wait(2),
        .say("max-age=60", ["ETag": told], status: 304),
        .fetch("1", sent: ["if-none-match": stored]), .hit("1", gets: ["etag": stored]))
    }
    + [("\"a-gzip\"", "br", "\"a\""), ("\"a\"", "gzip", "\"a-gzip\""), ("W/\"a\"", "-", "\"b\"")]
    .map {
      stored, coding, told in
      CacheCase(
        "9110 8.8.3", "a 304 with \(told) is not about \(stored), coding \(coding)",
        .say("max-age=1", ["ETag": stored, "Content-Encoding": coding]), .fetch("1"), .wait(2),
        .say("max-age=60", ["ETag": told], status: 304), .say("max-age=60"), .fetch("3"),
        .hit("3"))
    }

  /// Answers upon which the stored response is none any more, also when there is no network.
  private static let givenUp: [CacheCase] =
    [302, 303, 307, 308, 401, 403, 404, 405, 410, 451].map { status in
      CacheCase(
        "9111 4.3.3", "\(status) gives up what was kept", .say("max-age=1", tag), .fetch("1"),
        .wait(2),
        .say(
          [302, 307, 401, 403].contains(status) ? nil : "no-store", ["Location": "/login"],
          status: status),
        .fetch("2", status: status), .offline, .hit("", status: 504))
    }
    + [400, 408, 412, 429, 500, 511].map { status in
      CacheCase(
        "9111 4.3.3", "\(status) leaves what was kept", .say("max-age=1", tag), .fetch("1"),
        .wait(2), .say(nil, status: status), .fetch("2", status: status), .offline, .hit("1"))
    }

  private static let conditions: [CacheCase] = [
    CacheCase(
      "9111 4.3.2", "a reader who has the response gets a 304", .say("max-age=60", tag),
      .fetch("1"), .hit("", ["If-None-Match": "\"a\""], status: 304)),
    CacheCase(
      "9111 4.3.2", "one of several tags is enough", .say("max-age=60", tag), .fetch("1"),
      .hit("", ["If-None-Match": "\"x,y\", W/\"a\""], status: 304)),
    CacheCase(
      "9110 13.1.2", "If-None-Match: * is met by anything", .say("max-age=60", tag), .fetch("1"),
      .hit("", ["If-None-Match": "*"], status: 304)),
    CacheCase(
      "9111 4.3.2", "a reader who has another response gets this one", .say("max-age=60", tag),
      .fetch("1"), .hit("1", ["If-None-Match": "\"b\""])),
    CacheCase(
      "9110 13.1.3", "If-Modified-Since is met by what has not changed",
      .say("max-age=60", ["Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]), .fetch("1"),
      .hit("", ["If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"], status: 304)),
    CacheCase(
      "9110 13.1.3", "If-Modified-Since is not met by what has changed",
      .say("max-age=60", ["Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]), .fetch("1"),
      .hit("1", ["If-Modified-Since": "Wed, 31 Dec 2025 23:59:59 GMT"])),
    CacheCase(
      "9110 13.1.3", "If-None-Match overrides If-Modified-Since",
      .say(
        "max-age=60", ["ETag": "\"a\"", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]),
      .fetch("1"),
      .hit(
        "1", ["If-None-Match": "\"b\"", "If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"])),
    CacheCase(
      "9111 4.3.1", "the reader's tags are asked about beside the cache's",
      .say("max-age=1", tag), .fetch("1"), .wait(2), .say("max-age=60", tag, status: 304),
      .fetch("1", ["If-None-Match": "\"b\""], sent: ["if-none-match": "\"b\", \"a\""])),
    CacheCase(
      "9111 4.3.3", "a 304 for the reader's own tag is the reader's", .say("max-age=1", tag),
      .fetch("1"), .wait(2), .say("max-age=60", ["ETag": "\"b\""], status: 304),
      .fetch("", ["If-None-Match": "\"b\""], status: 304)),
    CacheCase(
      "9111 4.3.2", "If-Match is the server's to judge", .say("max-age=60", tag), .fetch("1"),
      .say(nil, status: 412), .fetch("2", ["If-Match": "\"b\""], status: 412), .hit("1")),
    CacheCase(
      "9111 4.3.2", "If-Unmodified-Since is the server's to judge", .say("max-age=60", tag),
      .fetch("1"), .say(nil, status: 412),
      .fetch("2", ["If-Unmodified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"], status: 412)),
    CacheCase(
      "9111 4.3.2", "a 304 for a reader where nothing is stored is the reader's",
      .say(nil, tag, status: 304), .fetch("", ["If-None-Match": "\"a\""], status: 304),
      .say("max-age=60"), .fetch("2")),
  ]

  private static let heads: [CacheCase] = [
    CacheCase(
      "9111 4", "HEAD is answered by what GET has brought", .say("max-age=60", tag), .fetch("1"),
      .hit("", method: "HEAD", gets: ["etag": "\"a\"", "content-length": "1"])),
    CacheCase(
      "9111 3", "HEAD is not kept as an answer to GET", .say("max-age=60"),
      .fetch("", method: "HEAD"), .say("max-age=60"), .fetch("2")),
    CacheCase(
      "9111 4.3.5", "HEAD makes fresh what it describes", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("max-age=60", tag), .fetch("", method: "HEAD"), .wait(30), .hit("1")),
    CacheCase(
      "9111 4.3.5", "HEAD of another tag makes void", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("max-age=60", ["ETag": "\"b\""]), .fetch("", method: "HEAD"),
      .say("max-age=60"), .fetch("3", sent: ["if-none-match": ""])),
    CacheCase(
      "9111 4.3.5", "HEAD of another length makes void", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("max-age=60", ["ETag": "\"a\"", "Content-Length": "77"]),
      .fetch("", method: "HEAD"), .say("max-age=60"), .fetch("3")),
    CacheCase(
      "9111 4.3.5", "HEAD of a content makes a redirect void",
      .say("max-age=1", ["Location": "/b"], status: 302), .fetch("1", status: 302), .wait(2),
      .say("max-age=60"), .fetch("", method: "HEAD"), .say("max-age=60"), .fetch("3")),
    CacheCase(
      "9111 4.3.4", "no-store of a 304 gives up also for a request with no-store",
      .say("max-age=0", tag), .fetch("1"), .say("no-store", tag, status: 304),
      .fetch("1", ["cache-control": "no-store"]), .offline, .hit("", status: 504)),
  ]
}
