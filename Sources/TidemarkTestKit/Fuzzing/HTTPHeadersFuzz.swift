internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Reads headers, dates and addresses. A bit of the options says what the bytes are.
enum HTTPHeadersFuzz {
  private static let mostSeconds: Int64 = 253_402_300_800

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let text = String(decoding: input.body, as: UTF8.self)
    if input.options & 1 == 0 { try runValue(text) } else { try runAddress(text) }
  }

  private static func runValue(_ text: String) throws(FuzzFinding) {
    if let length = HTTPHeaders.contentLength(text), length < 0 {
      throw FuzzFinding("a length is negative")
    }
    if let type = HTTPHeaders.mediaType(text), HTTPHeaders.mediaType(type) != type {
      throw FuzzFinding("a media type changes when it is read again")
    }
    if let date = HTTPDate.seconds(text), !(-62_167_219_200...mostSeconds).contains(date) {
      throw FuzzFinding("a date lies outside the years that can be written")
    }
    for now in [Int64.min, -1, 0, 1_800_000_000, .max] {
      if let seconds = HTTPHeaders.retryAfter(text, now: now),
        seconds > HTTPHeaders.retryAfterSeconds
      {
        throw FuzzFinding("Retry-After asks for too much")
      }
    }
    if HTTPHeaders.isValue(text), text.utf8.contains(where: { $0 == 0x0a || $0 == 0x0d }) {
      throw FuzzFinding("a header's value ends its line")
    }
  }

  /// The first line is the address, the second one a redirect.
  private static func runAddress(_ text: String) throws(FuzzFinding) {
    let lines = text.utf8.split(separator: 0x0a, maxSplits: 1).map { String(Substring($0)) }
    guard let first = lines.first, let address = HTTPAddress(first) else { return }
    guard HTTPAddress(address.description) == address else {
      throw FuzzFinding("an address changes when it is read again")
    }
    guard lines.count == 2, let next = address.redirected(to: lines[1]) else { return }
    guard next.scheme == address.scheme, next.authority == address.authority,
      HTTPAddress(next.description) == next
    else { throw FuzzFinding("a redirect leads elsewhere") }
  }

  static func seeds() -> [[UInt8]] {
    let values = [
      "120", "262144, 262144", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
      "Sun Nov  6 08:49:37 1994", "Application/Vnd.Tidemark.Sync; version=1",
      "text/event-stream;charset=utf-8", "Bearer abc.def",
    ]
    let addresses = [
      "https://sync.example.org:8443/notes/v1/push\n/moved/v1/push",
      "http://[::1]:80/a?b#c\nhttp://[::1]/d", "http://127.0.0.1\n//elsewhere/x",
    ]
    return values.map { [0] + Array($0.utf8) } + addresses.map { [1] + Array($0.utf8) }
  }
}
