/// Cases of what is kept: RFC 9111, 3, and what changes it: 4.4.
enum StorageCases {
  private static let tag = ["ETag": "\"a\""]

  static let all: [CacheCase] = storing + directives + varying + voiding

  private static let storing: [CacheCase] =
    [200, 203, 300, 301, 308, 404, 405, 410, 414, 501].map { status in
      CacheCase(
        "9111 3", "status \(status) is kept with a freshness",
        .say("max-age=60", status: status), .fetch("1", status: status),
        .hit("1", status: status))
    } + [
      CacheCase(
        "9111 3", "status 204 is kept without a body", .say("max-age=60", status: 204),
        .fetch("", status: 204), .hit("", status: 204)),
      CacheCase(
        "9111 3", "status 302 is kept when it says for how long",
        .say("max-age=60", status: 302), .fetch("1", status: 302), .hit("1", status: 302)),
      CacheCase(
        "9111 3", "status 302 is not kept when it says nothing", .say(nil, status: 302),
        .fetch("1", status: 302), .say(nil), .fetch("2", sent: ["if-none-match": ""])),
      CacheCase(
        "9111 3", "status 500 is not kept when it says nothing", .say(nil, tag, status: 500),
        .fetch("1", status: 500), .say(nil), .fetch("2", sent: ["if-none-match": ""])),
      CacheCase(
        "9111 3", "status 599 is kept when it says for how long",
        .say("max-age=60", status: 599), .fetch("1", status: 599), .hit("1", status: 599)),
      CacheCase(
        "9111 3", "a response that says nothing is asked about", .say(nil, tag), .fetch("1"),
        .say(nil, tag, status: 304), .fetch("1", sent: ["if-none-match": "\"a\""])),
      CacheCase(
        "9111 3.1", "fields of the connection are not kept",
        .say("max-age=60", ["Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "5", "X-End": "2"]),
        .fetch("1"), .hit("1", gets: ["x-hop": "", "keep-alive": "", "x-end": "2"])),
      CacheCase(
        "9111 3.1", "fields of the framing are not kept",
        .say(
          "max-age=60",
          ["Transfer-Encoding": "chunked", "Content-Length": "-", "Trailer": "X-A", "X-End": "2"],
          body: "2\r\nok\r\n0\r\n\r\n"),
        .fetch("ok", gets: ["transfer-encoding": "", "trailer": ""]),
        .hit("ok", gets: ["transfer-encoding": "", "trailer": "", "x-end": "2"])),
      CacheCase(
        "9111 3.5", "a private cache keeps what was authorized", .say("max-age=60"),
        .fetch("1", ["Authorization": "Basic YTpi"]), .hit("1", ["Authorization": "Basic YTpi"])),
      CacheCase(
        "9111 3", "POST is not kept", .say("max-age=60"), .fetch("1", method: "POST"),
        .say("max-age=60"), .fetch("2", method: "POST"), .say(nil), .fetch("3")),
      CacheCase(
        "9111 2", "another address is another response", .say("max-age=60"), .fetch("1"),
        .say("max-age=60"), .fetch("2", path: "/b"), .hit("1"), .hit("2", path: "/b")),
      CacheCase(
        "9111 2", "a query is part of the address", .say("max-age=60"), .fetch("1", path: "/a?x=1"),
        .say("max-age=60"), .fetch("2", path: "/a?x=2"), .hit("1", path: "/a?x=1")),
      CacheCase(
        "9110 7.1", "what follows # is no part of the address", .say("max-age=60"),
        .fetch("1"), .hit("1", path: "/a#part")),
    ]

  private static let directives: [CacheCase] = [
    CacheCase(
      "9111 5.2.2.5", "no-store of a response keeps nothing", .say("no-store, max-age=60", tag),
      .fetch("1"), .say(nil), .fetch("2", sent: ["if-none-match": ""])),
    CacheCase(
      "9111 5.2.2.5", "no-store gives up what was kept", .say("max-age=1", tag), .fetch("1"),
      .wait(2), .say("no-store"), .fetch("2"), .say("no-store"),
      .fetch("3", sent: ["if-none-match": ""])),
    CacheCase(
      "9111 5.2.1.5", "no-store of a request keeps nothing", .say("max-age=60"),
      .fetch("1", ["Cache-Control": "no-store"]), .say("max-age=60"), .fetch("2"), .hit("2")),
    CacheCase(
      "9111 5.2.2.7", "private is kept by a private cache", .say("private, max-age=60"),
      .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.2.9", "public allows to keep any status", .say("public", tag, status: 418),
      .fetch("1", status: 418), .say(nil, tag, status: 304),
      .fetch("1", status: 418, sent: ["if-none-match": "\"a\""])),
    CacheCase(
      "9111 5.2.2.3", "must-understand overrides no-store where the status is known",
      .say("must-understand, no-store, max-age=60"), .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.2.3", "must-understand keeps nothing where the status is unknown",
      .say("must-understand, max-age=60", status: 299), .fetch("1", status: 299), .say(nil),
      .fetch("2")),
    CacheCase(
      "9111 5.2", "names of directives have no case", .say("MAX-AGE=60"), .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.3", "unknown directives are passed over",
      .say("community=\"a, no-store\", max-age=60"),
      .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.2.6", "no-transform changes nothing about keeping",
      .say("no-transform, max-age=60"),
      .fetch("1"), .hit("1")),
    CacheCase(
      "9111 5.2.2.10", "s-maxage is not for a private cache", .say("s-maxage=60, max-age=0", tag),
      .fetch("1"), .say(nil), .fetch("2")),
    CacheCase(
      "9111 5.2.2.8", "proxy-revalidate is not for a private cache",
      .say("proxy-revalidate, max-age=1"), .fetch("1"), .wait(5),
      .hit("1", ["Cache-Control": "max-stale"])),
  ]

  private static let varying: [CacheCase] = [
    CacheCase(
      "9111 4.1", "a response serves requests with the same field",
      .say("max-age=60", ["Vary": "X-A"]), .fetch("1", ["X-A": "1"]), .hit("1", ["X-A": "1"])),
    CacheCase(
      "9111 4.1", "a response does not serve requests with another field",
      .say("max-age=60", ["Vary": "X-A"]), .fetch("1", ["X-A": "1"]),
      .say("max-age=60", ["Vary": "X-A"]), .fetch("2", ["X-A": "2"]), .hit("1", ["X-A": "1"]),
      .hit("2", ["X-A": "2"])),
    CacheCase(
      "9111 4.1", "a field that is absent is not one that is there",
      .say("max-age=60", ["Vary": "X-A"]), .fetch("1"), .hit("1"),
      .say("max-age=60", ["Vary": "X-A"]), .fetch("2", ["X-A": "1"])),
    CacheCase(
      "9111 4.1", "spaces in a list make no other response",
      .say("max-age=60", ["Vary": "Accept-Language"]), .fetch("1", ["Accept-Language": "de, en"]),
      .hit("1", ["Accept-Language": "de,en"])),
    CacheCase(
      "9111 4.1", "names in Vary have no case", .say("max-age=60", ["Vary": "x-A, X-b"]),
      .fetch("1", ["X-A": "1", "X-B": "2"]), .hit("1", ["x-a": "1", "x-b": "2"])),
    CacheCase(
      "9111 4.1", "each of several fields counts", .say("max-age=60", ["Vary": "X-A, X-B"]),
      .fetch("1", ["X-A": "1", "X-B": "2"]), .say("max-age=60", ["Vary": "X-A, X-B"]),
      .fetch("2", ["X-A": "1", "X-B": "3"])),
    CacheCase(
      "9111 4.1", "Vary: * is never served", .say("max-age=60", ["Vary": "*"]), .fetch("1"),
      .say("max-age=60", ["Vary": "*"]), .fetch("2")),
    CacheCase(
      "9111 4.1", "Vary: * among others is never served", .say("max-age=60", ["Vary": "X-A, *"]),
      .fetch("1"), .say("max-age=60"), .fetch("2"), .hit("2")),
    CacheCase(
      "9111 4.1", "a response that varies by other fields makes the former ones void",
      .say("max-age=60", ["Vary": "X-A"]), .fetch("1", ["X-A": "1"]),
      .say("max-age=60", ["Vary": "X-B"]), .fetch("2", ["X-A": "2"]),
      .say("max-age=60", ["Vary": "X-A"]), .fetch("3", ["X-A": "9", "X-B": "1"]),
      .say("max-age=60"), .fetch("4", ["X-A": "1"])),
    CacheCase(
      "9111 4.1", "a response without Vary serves all from then on",
      .say("max-age=60", ["Vary": "X-A"]), .fetch("1", ["X-A": "1"]), .say("max-age=60"),
      .fetch("2", ["X-A": "2"]), .hit("2", ["X-A": "1"])),
    CacheCase(
      "9111 4.3", "each variant is asked about by its own tag",
      .say("max-age=1", ["Vary": "X-A", "ETag": "\"a\""]), .fetch("1", ["X-A": "1"]),
      .say("max-age=1", ["Vary": "X-A", "ETag": "\"b\""]), .fetch("2", ["X-A": "2"]), .wait(2),
      .say("max-age=1", ["ETag": "\"a\""], status: 304),
      .fetch("1", ["X-A": "1"], sent: ["if-none-match": "\"a\""])),
  ]

  private static let voiding: [CacheCase] =
    ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"].map { method in
      CacheCase(
        "9111 4.4", "\(method) makes the address void", .say("max-age=60"), .fetch("1"),
        .say(nil), .fetch("2", method: method), .say("max-age=60"), .fetch("3"), .hit("3"))
    } + [
      CacheCase(
        "9111 4.4", "a redirect of an unsafe method makes the address void", .say("max-age=60"),
        .fetch("1"), .say(nil, ["Location": "/b"], status: 303),
        .fetch("2", status: 303, method: "POST"), .say("max-age=60"), .fetch("3")),
      CacheCase(
        "9111 4.4", "an unsafe method that fails changes nothing", .say("max-age=60"),
        .fetch("1"), .say(nil, status: 500), .fetch("2", status: 500, method: "POST"), .hit("1")),
      CacheCase(
        "9111 4.4", "an unsafe method that is refused changes nothing", .say("max-age=60"),
        .fetch("1"), .say(nil, status: 403), .fetch("2", status: 403, method: "PUT"), .hit("1")),
      CacheCase(
        "9111 4.4", "Location of the same server is void, too", .say("max-age=60"),
        .fetch("1", path: "/b"), .say(nil, ["Location": "/b"], status: 201),
        .fetch("2", status: 201, method: "POST"), .say(nil), .fetch("3", path: "/b")),
      relative("item", "/item"), relative("./x/../item", "/item"), relative("?id=1", "/a?id=1"),
      relative("../../item", "/item"),
      CacheCase(
        "9111 4.4", "Content-Location that is relative is void, too", .say("max-age=60"),
        .fetch("1", path: "/x/item"), .say(nil, ["Content-Location": "item?#top"]),
        .fetch("2", method: "PUT", path: "/x/a"), .hit("1", path: "/x/item"),
        .say(nil, ["Content-Location": "item#top"]), .fetch("3", method: "PUT", path: "/x/a"),
        .say(nil), .fetch("4", path: "/x/item")),
      CacheCase(
        "9111 4.4", "Content-Location of the same server is void, too", .say("max-age=60"),
        .fetch("1", path: "/b"), .say(nil, ["Content-Location": "ORIGIN/b"]),
        .fetch("2", method: "POST"), .say(nil), .fetch("3", path: "/b")),
      CacheCase(
        "9111 4.4", "Location of another server changes nothing", .say("max-age=60"),
        .fetch("1", path: "/b"), .say(nil, ["Location": "http://other.example/b"], status: 201),
        .fetch("2", status: 201, method: "POST"), .hit("1", path: "/b")),
      CacheCase(
        "9111 4.4", "all variants of an address are void", .say("max-age=60", ["Vary": "X-A"]),
        .fetch("1", ["X-A": "1"]), .say("max-age=60", ["Vary": "X-A"]), .fetch("2", ["X-A": "2"]),
        .say(nil), .fetch("3", method: "DELETE"), .say("max-age=60", ["Vary": "X-A"]),
        .fetch("4", ["X-A": "1"]), .say("max-age=60", ["Vary": "X-A"]), .fetch("5", ["X-A": "2"])),
      CacheCase(
        "9111 4", "OPTIONS changes nothing", .say("max-age=60"), .fetch("1"), .say(nil),
        .fetch("2", method: "OPTIONS"), .hit("1")),
    ]

  private static func relative(_ location: String, _ path: String) -> CacheCase {
    CacheCase(
      "9111 4.4", "Location \(location) is void, too", .say("max-age=60"),
      .fetch("1", path: path), .say(nil, ["Location": location], status: 201),
      .fetch("2", status: 201, method: "POST"), .say(nil), .fetch("3", path: path))
  }
}
