import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol

@Suite("Broken and hostile messages")
struct WireHostileTests {
  private let coder = WireCoder(codec: .none)
  private let replica = [UInt8](repeating: 9, count: 16)

  private func decode(
    _ kind: WireMessage.Kind, _ raw: [UInt8], limit: Int = WireFrame.defaultLimit
  ) throws(PeerError) -> WireMessage {
    try WireCoder(limit: limit).decode(WireTestFrame.frame(kind, raw))
  }

  private func refusal(
    _ kind: WireMessage.Kind, _ raw: [UInt8], limit: Int = WireFrame.defaultLimit
  ) -> String? {
    do throws(PeerError) { _ = try decode(kind, raw, limit: limit) } catch {
      return error.message
    }
    return nil
  }

  @Test("a message that is cut off anywhere is refused", arguments: WireSamples.messages.indices)
  func truncations(_ index: Int) throws {
    let (name, message) = WireSamples.messages[index]
    let raw = try WireTestFrame.raw(message)
    for count in 0..<raw.count {
      #expect(refusal(message.kind, Array(raw[..<count])) != nil, "\(name), \(count) bytes")
    }
    #expect(refusal(message.kind, raw + [0]) == "bytes after the message", "\(name)")
    let text = try coder.encodeJSON(message)
    for count in 0..<text.count {
      #expect(throws: PeerError.self, "\(name), \(count) characters") {
        try coder.decodeJSON(Array(text[..<count]))
      }
    }
  }

  @Test(
    "policies that make no sense are refused, as frames and as JSON",
    arguments: ["many", "long", "twice", "order", "unknown", "rest", "none"])
  func policies(fault: String) throws {
    var answer = HelloAnswer(
      feed: .none, range: FeedRange(epochs: [], head: 0, truncatedThrough: 0),
      mark: ReplicaMark(), time: 0)
    let prefixes: [String] =
      switch fault {
      case "many": (0..<1_025).map { "\(10_000 + $0)" }
      case "long": ["a" + String(repeating: "x", count: 33_000)]
      case "twice": ["a", "a"]
      case "order": ["b", "a"]
      default: ["a"]
      }
    answer.policies = prefixes.map { CollectionPolicy(prefix: $0, policy: .detect) }
    let bytes: [UInt8]
    switch fault {
    case "unknown": bytes = [1, 1, 97, 9]
    case "rest": bytes = [1, 1, 97, 1, 0]
    case "none": bytes = [0]
    default:
      var list = ByteWriter()
      list.varint(prefixes.count)
      for prefix in prefixes {
        list.blob(Array(prefix.utf8))
        list.u8(1)
      }
      bytes = list.bytes
      #expect(throws: FormatError.self) { try WireMessage.helloAnswer(answer).check() }
    }
    answer.policies = []
    var fields = ByteWriter()
    fields.varint(3)
    fields.blob(bytes)
    var raw = ByteWriter()
    raw.blob(fields.bytes)
    raw.raw(Array(try WireTestFrame.raw(.helloAnswer(answer)).dropFirst()))
    #expect(refusal(.helloAnswer, raw.bytes) != nil)

    guard !["rest", "none"].contains(fault) else { return }
    let name = fault == "unknown" ? "first_writer_wins" : "detect"
    let rows = prefixes.map { #"{"prefix":"\#($0)","policy":"\#(name)"}"# }
    var text = String(decoding: try coder.encodeJSON(.helloAnswer(answer)), as: UTF8.self)
    text.removeLast()
    text += #","policies":[\#(rows.joined(separator: ","))]}"#
    #expect(throws: PeerError.self) { try coder.decodeJSON(Array(text.utf8)) }
  }

  /// Whether an optional field's number stands at a place of a sample: the first of the message,
  /// those of a hello's answer behind the reach, that of an attachment, or the one behind it.
  private static func isFieldNumber(_ place: Int, of raw: [UInt8]) -> Bool {
    if place == 1 { return raw[0] > 0 }
    if place == 11, raw[0] > 10 { return true }
    if place == 18, raw[0] > 17 { return true }
    if place > 39, raw[place - 39..<place - 37] == [1, 37] { return true }
    return raw.indices.contains(place + 2) && raw[place..<place + 2] == [1, 37]
      && raw[place + 2] == 0x40
  }

  @Test(
    "a flipped bit gives an error or another message, which has its one coding too",
    arguments: WireSamples.messages.indices)
  func flips(_ index: Int) throws {
    let (name, message) = WireSamples.messages[index]
    let raw = try WireTestFrame.raw(message)
    let isLong = raw.count > 400
    for bit in 0..<raw.count * 8 where !isLong || bit % 7 == 0 {
      var broken = raw
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      guard let other = try? decode(message.kind, broken) else { continue }
      #expect(other != message, "\(name), bit \(bit)")
      // Another number of an optional field makes it one that is passed over.
      if Self.isFieldNumber(bit / 8, of: raw) { continue }
      let again = try WireTestFrame.raw(other)
      #expect(again == broken, "\(name), bit \(bit)")
    }
    let text = try coder.encodeJSON(message)
    for bit in 0..<text.count * 8 where text.count < 2000 || bit % 97 == 0 {
      var broken = text
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      guard let other = try? coder.decodeJSON(broken) else { continue }
      #expect(try coder.decodeJSON(coder.encodeJSON(other)) == other, "\(name), bit \(bit)")
    }
    let frame = try coder.encode(message)
    for bit in 0..<frame.count * 8 where !isLong || bit % 7 == 0 {
      var broken = frame
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: PeerError.self, "\(name), bit \(bit)") { try coder.decode(broken) }
    }
  }

  @Test("a count beyond the bytes that are left is refused before anything is set aside")
  func counts() {
    let most: [UInt8] = [0x80, 0x80, 0x04]  // 65,536
    let number: [UInt8] = [1] + [UInt8](repeating: 0, count: 8)
    #expect(refusal(.valuesRequest, [0] + replica + [0] + most + [0, 1, 7]) == "ends too early")
    #expect(refusal(.pushRequest, [0] + replica + number + most + [1, 2, 3]) == "ends too early")
    #expect(
      refusal(.valuesRequest, [0] + replica + [0] + [0x81, 0x80, 0x04]) == "number out of bounds")
    let huge = [UInt8](repeating: 0xff, count: 9) + [0x01]
    #expect(refusal(.valuesRequest, [0] + replica + [0] + huge) == "number out of bounds")
  }

  @Test("numbers that are longer than they need be are refused")
  func overlong() {
    #expect(refusal(.valuesRequest, [0] + replica + [0] + [0x00]) == nil)
    #expect(
      refusal(.valuesRequest, [0] + replica + [0] + [0x80, 0x00])
        == "number not in its shortest form")
  }

  @Test("keys that share their beginning cannot take more memory than a message may have")
  func sharedKeys() throws {
    var writer = ByteWriter()
    writer.u8(0)
    writer.raw(replica)
    writer.u8(0)
    writer.varint(1_001)
    writer.varint(0)
    writer.varint(60_000)
    writer.raw([UInt8](repeating: 7, count: 60_000))
    for _ in 0..<1_000 {
      writer.varint(60_000)
      writer.varint(0)
    }
    #expect(
      refusal(.valuesRequest, writer.bytes) == "keys are longer than a message may be")
    #expect(refusal(.valuesRequest, writer.bytes, limit: 61 << 20) == nil)
    let long = [UInt8](repeating: 7, count: 60_000)
    let request = ValuesRequest(
      replica: try #require(ReplicaID(replica)), keys: .init(repeating: long, count: 20))
    #expect(throws: PeerError.self) { try coder.encode(.valuesRequest(request)) }
  }

  @Test("a key that could share more with the last one is refused")
  func sharing() {
    let keys: [UInt8] = [2, 0, 2, 0x61, 0x62, 1, 1, 0x63]
    #expect(refusal(.valuesRequest, [0] + replica + [0] + keys) == nil)
    #expect(
      refusal(.valuesRequest, [0] + replica + [0] + [2, 0, 2, 0x61, 0x62, 0, 2, 0x61, 0x63])
        == "a key shares more with the last one than it says")
    #expect(
      refusal(.valuesRequest, [0] + replica + [0] + [1, 0, 0])
        == "a key has 0 bytes; 1 to 65535 are allowed")
    #expect(refusal(.valuesRequest, [0] + replica + [0] + [1, 1, 1, 9]) == "number out of bounds")
  }

  @Test("labels of a scope that are not in order are refused, in JSON they need no order")
  func labelOrder() throws {
    let sorted: [UInt8] = [2, 1, 0x61, 1, 0x62, 0, 1, 0]
    let unsorted: [UInt8] = [2, 1, 0x62, 1, 0x61, 0, 1, 0]
    #expect(refusal(.digestRequest, [0] + replica + sorted) == nil)
    #expect(refusal(.digestRequest, [0] + replica + unsorted) == "labels are not in order")
    #expect(
      refusal(.digestRequest, [0] + replica + [2, 1, 0x61, 1, 0x61, 0, 1, 0])
        == "labels are not in order")
    let digits = String(repeating: "09", count: 16)
    let text = #"{"type":"digest","replica":"\#(digits)","scope":{"labels":["b","a"]}}"#
    #expect(
      try coder.decodeJSON(Array(text.utf8)) == decode(.digestRequest, [0] + replica + sorted))
  }

  @Test("parts of a digest are in order, apart and few enough")
  func digestPaths() throws {
    func paths(_ bytes: [UInt8]) -> String? {
      refusal(.digestRequest, [0] + replica + [0, 0] + bytes)
    }
    #expect(paths([2, 1, 7, 2, 8, 9]) == nil)
    #expect(paths([0]) == "0 parts of a digest; 1 to 1024 are allowed")
    let wrong = "parts of a digest are not in order, or one lies within another"
    for bytes: [UInt8] in [[2, 1, 8, 1, 7], [2, 1, 7, 1, 7], [2, 1, 7, 2, 7, 1], [2, 0, 1, 7]] {
      #expect(paths(bytes) == wrong, "\(bytes)")
    }
    #expect(
      paths([1, 33] + [UInt8](repeating: 1, count: 33))
        == "the length of a path is 33; 0 to 32 are allowed")
    #expect(paths([0x81, 0x08] + [UInt8](repeating: 0, count: 1_025)) == "number out of bounds")
    let sample = try #require(WireSamples.messages.first { $0.name == "digest_answer" })
    guard case .digestAnswer(var answer) = sample.message else { return }
    answer.parts = []
    #expect(throws: PeerError.self) { try coder.encode(.digestAnswer(answer)) }
  }

  @Test("runs of verdicts are whole, known and within their count")
  func verdicts() {
    func mark(_ verdicts: [UInt8]) -> String? {
      let range: [UInt8] = [0, 0, 0]
      let number: [UInt8] = [1] + [UInt8](repeating: 0, count: 8)
      return refusal(.pushAnswer, [0] + range + number + verdicts + [0, 0])
    }
    #expect(mark([3, 0x30, 0]) == nil)
    #expect(mark([2, 0x30, 0]) == "a run of verdicts is out of bounds")
    #expect(mark([2, 0x10, 0, 0x10, 0]) == "two runs of verdicts are one")
    #expect(mark([2, 0x10, 0, 0x10, 2]) == nil)
    #expect(mark([1, 0x00, 0]) == "a run of verdicts is out of bounds")
    #expect(mark([1, 0x16, 0]) == "verdict 6 is not known here")
    #expect(
      mark([1, 0x1d]) == "verdict 5 is not known here" || mark([1, 0x1d]) == "ends too early")
    #expect(mark([2, 0x15, 0x15]) == "two runs of verdicts are one")
    // Offset 2^64 - 1, which none may have, and one behind it.
    #expect(
      mark([1, 0x10, 3])
        == "a number is 18446744073709551615; at most 281474976710655 is allowed")
    #expect(mark([2, 0x20, 3]) == "an offset is out of bounds")
  }

  @Test("a position beyond every feed is refused wherever a request has one")
  func positions() throws {
    let replica = try #require(ReplicaID(self.replica))
    func refuses(_ offset: UInt64) -> [Bool] {
      let position = FeedPosition(epoch: 1, offset: offset)
      let requests: [WireMessage] = [
        .helloRequest(HelloRequest(replica: replica, cursor: position)),
        .pullRequest(PullRequest(replica: replica, after: position)),
        .pushRequest(
          PushRequest(
            replica: replica, number: 1, batchID: BatchID(1), knownHead: position, changes: [])),
      ]
      return requests.map { (try? coder.encode($0)) == nil }
    }
    #expect(refuses(WireLimits.counts - 1) == [false, false, false])
    #expect(refuses(WireLimits.counts) == [true, true, true])
  }

  @Test("fields of a later version are passed over in answers and refused in requests")
  func optionalFields() throws {
    let body: [UInt8] = [2, 0] + [1, 0x78]
    let plain = try decode(.error, [0] + body)
    #expect(plain == .error(PeerError(.busy, "x")))
    #expect(try decode(.error, [7, 1, 0, 9, 3, 1, 2, 3] + body) == plain)
    #expect(refusal(.error, [4, 9, 0, 1, 0] + body) == "optional fields are not in order")
    #expect(refusal(.error, [3, 1, 2, 0] + body) == "optional fields end too late")
    #expect(refusal(.error, [1, 1] + body) != nil)
    let push = replica + [1] + [UInt8](repeating: 1, count: 8) + [UInt8](repeating: 0, count: 10)
    let reach: [UInt8] = [10, 1, 8, 5, 0, 0, 0, 0, 0, 0, 0]
    let read = try decode(.pushRequest, reach + push)
    let request = if case .pushRequest(let request) = read { request } else { nil as PushRequest? }
    #expect(request?.reach == 5 && request?.previousBatchID == nil)
    #expect(refusal(.pushRequest, [3, 1, 1, 0] + push) == "ends too early")
    #expect(
      refusal(.pushRequest, [11, 1, 9] + [UInt8](repeating: 0, count: 9) + push)
        == "an optional field is longer than its content")
    #expect(refusal(.pushRequest, [2, 3, 0] + push) == "fields that are not known here")
    #expect(
      refusal(.valuesRequest, [2, 1, 0] + replica + [0, 0]) == "fields that are not known here")

    func json(_ text: String) throws -> WireMessage { try coder.decodeJSON(Array(text.utf8)) }
    #expect(try json(#"{"type":"error","kind":"busy","message":"x","new":[{}]}"#) == plain)
    let digits = String(repeating: "09", count: 16)
    #expect(throws: PeerError.self) {
      try json(#"{"type":"values","replica":"\#(digits)","keys":[],"new":1}"#)
    }
    #expect(throws: PeerError.self) {
      try json(#"{"type":"values","replica":"\#(digits)","keys":[{"key":"a","new":1}]}"#)
    }
    #expect(throws: PeerError.self) { try json(#"{"type":"error","kind":"busy","kind":"busy"}"#) }
  }

  @Test(
    "JSON beyond a bound is refused in words that name it",
    arguments: [
      (#""retry_after_seconds":4294967296"#, "4294967295"),
      (#""retry_after_seconds":18446744073709551616"#, "18446744073709551615"),
      (#""new":"# + String(repeating: "[", count: 20), "16 levels"),
      ((0..<70).map { #""a\#($0)":0"# }.joined(separator: ","), "64 fields"),
    ])
  func namedBounds(field: String, bound: String) {
    do throws(PeerError) {
      _ = try coder.decodeJSON(Array(#"{"type":"error","kind":"busy",\#(field)}"#.utf8))
      Issue.record("taken")
    } catch { #expect(error.message.contains(bound), "\(error.message)") }
    let long = Array((#"{"type":"error","kind":"busy","#).utf8)
    do throws(PeerError) {
      _ = try WireCoder(limit: 5).decodeJSON(long)
      Issue.record("taken")
    } catch { #expect(error.message.contains("at most 20 "), "\(error.message)") }
  }

  @Test("an array in JSON that is too long is refused in words that name its bound")
  func namedBoundOfArrays() {
    let labels = Array(repeating: #""l""#, count: 4_097).joined(separator: ",")
    let digest = #"{"type":"digest","replica":"\#(String(repeating: "1", count: 32))","#
    do throws(PeerError) {
      _ = try coder.decodeJSON(Array((digest + #""scope":{"labels":[\#(labels)]}}"#).utf8))
      Issue.record("taken")
    } catch {
      #expect(error.message.contains("4097 elements; at most 4096 "), "\(error.message)")
    }
  }

  @Test("JSON that is nested too deep, too long or not of the right types is refused")
  func json() {
    func refuses(_ text: String, limit: Int = 1 << 20) -> Bool {
      (try? WireCoder(limit: limit).decodeJSON(Array(text.utf8))) == nil
    }
    let error = #"{"type":"error","kind":"busy","message":"x"}"#
    #expect(!refuses(error) && !refuses(error, limit: error.utf8.count / 4))
    #expect(refuses(error, limit: error.utf8.count / 4 - 1))
    for value in ["1", "null", "[]", "true", "{}", #""kind""#] {
      #expect(refuses(#"{"type":"error","kind":\#(value)}"#), "\(value)")
    }
    for value in ["-1", "1.0", "1e3", "4294967296", "18446744073709551616", #""1""#] {
      let text = #"{"type":"error","kind":"busy","retry_after_seconds":\#(value)}"#
      #expect(refuses(text), "\(value)")
    }
    func nested(_ depth: Int) -> String {
      let open = String(repeating: "[", count: depth)
      let close = String(repeating: "]", count: depth)
      return #"{"type":"error","kind":"busy","new":\#(open)\#(close)}"#
    }
    #expect(!refuses(nested(15)) && refuses(nested(16)) && refuses(nested(100_000)))
    let many = (0..<70).map { #""a\#($0)":0"# }.joined(separator: ",")
    #expect(refuses(#"{"type":"error","kind":"busy",\#(many)}"#))
  }
}
