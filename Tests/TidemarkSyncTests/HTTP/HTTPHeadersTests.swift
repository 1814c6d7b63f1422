import Testing
import TidemarkSyncProtocol

@Suite("Headers of HTTP")
struct HTTPHeadersTests {
  @Test(
    "lengths are digits, and lists of equal lengths are one",
    arguments: [
      ("0", 0), ("262144", 262_144), (" 5\t", 5), ("5, 5", 5), ("007", 7),
      ("999999999999999999", 999_999_999_999_999_999),
    ])
  func length(text: String, length: Int) {
    #expect(HTTPHeaders.contentLength(text) == length)
  }

  @Test(
    "text that is no length is refused",
    arguments: [
      "", " ", "-1", "+1", "1 2", "5,6", "5,", "0x10", "1e3", "٣", "9999999999999999999",
      "18446744073709551617", String(repeating: "1,", count: 5000) + "1",
    ])
  func noLength(text: String) { #expect(HTTPHeaders.contentLength(text) == nil) }

  @Test("media types are compared without case and parameters")
  func mediaType() {
    for text in ["text/event-stream", "Text/Event-Stream; charset=utf-8", " text/event-stream ;"] {
      #expect(HTTPHeaders.mediaType(text) == "text/event-stream", "\(text)")
    }
    for text in ["", "text", "text/", "/html", "a/b/c", "text/ht ml", "text/h\u{e9}", ";a/b"] {
      #expect(HTTPHeaders.mediaType(text) == nil, "\(text)")
    }
  }

  @Test("Retry-After is a number of seconds or a date, and a day at most")
  func retryAfter() {
    let now: Int64 = 784_111_777
    func seconds(_ text: String) -> UInt32? { HTTPHeaders.retryAfter(text, now: now) }
    #expect(seconds("120") == 120)
    #expect(seconds("0") == 0)
    #expect(seconds("99999999") == 86_400)
    #expect(seconds(String(repeating: "9", count: 1000)) == 86_400)
    #expect(seconds("Sun, 06 Nov 1994 08:50:37 GMT") == 60)
    #expect(seconds("Sun, 06 Nov 1994 08:40:37 GMT") == 0)
    #expect(seconds("Fri, 31 Dec 9999 23:59:59 GMT") == 86_400)
    for text in ["", "-1", "1.5", "soon", "12 34", "Sun, 06 Nov 1994", "١٢"] {
      #expect(seconds(text) == nil, "\(text)")
    }
    #expect(HTTPHeaders.retryAfter("Fri, 31 Dec 9999 23:59:59 GMT", now: .min) == 0)
    #expect(HTTPHeaders.retryAfter("Thu, 01 Jan 1970 00:00:00 GMT", now: .max) == 0)
  }

  @Test(
    "dates come in three forms",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
      ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
      ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
      ("Friday, 01-Jan-69 00:00:00 GMT", 3_124_224_000),
    ])
  func dates(text: String, seconds: Int64) { #expect(HTTPDate.seconds(text) == seconds) }

  @Test(
    "text that is no date is refused",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
      "Mon, 29 Feb 2100 00:00:00 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
      "Sun, 0 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 19940 08:49:37 GMT", ",,,,,", "- - - - -",
      "Sun, 06 Nov 94 08:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994  08:49:37 GMT", " Sun, 06 Nov 1994 08:49:37 GMT",
      "Sun, 6 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
      "Sunday, 06--Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov  06 08:49:37 1994",
      "Sun Nov  6 08:49:37 94", "Sun,\t06 Nov 1994 08:49:37 GMT",
    ])
  func noDates(text: String) { #expect(HTTPDate.seconds(text) == nil) }

  @Test("a header's value cannot end its line")
  func values() {
    #expect(HTTPHeaders.isValue("Bearer abc.def-_~+/="))
    for text in ["", "a\r\nX: y", "a\nb", "a\0", " a", "a\t", "\u{e9}", "a\u{7f}"] {
      #expect(!HTTPHeaders.isValue(text), "\(text)")
    }
  }
}

@Suite("Addresses of HTTP")
struct HTTPAddressTests {
  @Test("addresses are read into their parts")
  func parts() throws {
    let address = try #require(HTTPAddress("HTTPS://Sync.Example.org:443/notes?x=1#top"))
    #expect(address.scheme == "https" && address.authority == "sync.example.org")
    #expect(address.path == "/notes?x=1")
    #expect(address.description == "https://sync.example.org/notes?x=1")
    #expect(HTTPAddress("http://[::1]:8080/a")?.authority == "[::1]:8080")
    #expect(HTTPAddress("http://127.0.0.1:80")?.description == "http://127.0.0.1")
    #expect(HTTPAddress("http://a?b")?.path == "/?b")
  }

  @Test(
    "text that is no address is refused",
    arguments: [
      "", "notes", "ftp://a/b", "http:/a", "http://", "http:///a", "http://user:pass@a/b",
      "http://a@b/", "http://a:0/", "http://a:65536/", "http://a:+80/", "http://a:8x/",
      "http://[::1/", "http://[::g]/", "http://a]/", "http://a b/", "http://a/b\r\nX: y",
      "http://\u{e9}/", "http://[::1]x/", "http://a:80:80/",
      "http://" + .init(repeating: "a", count: 5000),
    ])
  func refused(text: String) { #expect(HTTPAddress(text) == nil) }

  @Test("redirects are followed within one server only")
  func redirects() throws {
    let address = try #require(HTTPAddress("https://a:8443/x/v1/push"))
    #expect(address.redirected(to: "/y/v1/push")?.description == "https://a:8443/y/v1/push")
    #expect(address.redirected(to: "https://A:8443/z")?.path == "/z")
    for (text, path) in [
      ("x", "/x/v1/x"), ("../x?a=/..", "/x/x?a=/.."), ("./", "/x/v1/"), ("..", "/x/"),
      ("?q=1#top", "/x/v1/push?q=1"), ("/a/./b/../c", "/a/c"), ("../../../x", "/x"),
      ("//a:8443/x", "/x"), ("x:y", nil), ("a/b:c", "/x/v1/a/b:c"), ("#top", "/x/v1/push"),
      ("x|y{z}", "/x/v1/x|y{z}"), ("/x//y", "/x//y"),
    ] {
      #expect(address.redirected(to: text)?.path == path, "\(text)")
    }
    #expect(HTTPAddress("http://a")?.redirected(to: "x")?.description == "http://a/x")
    #expect(HTTPAddress("http://a?q")?.redirected(to: "x")?.description == "http://a/x")
    for text in [
      "https://a/x", "http://a:8443/x", "//b/x", "https://b:8443/x", "", "https://a:8443@b/",
      "/\r\nX: y", "x y",
    ] {
      #expect(address.redirected(to: text) == nil, "\(text)")
    }
  }
}
