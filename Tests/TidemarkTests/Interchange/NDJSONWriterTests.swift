import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON

@Suite("Lines of an export")
struct NDJSONWriterTests {
  private func line(_ entry: PlainEntry) -> String {
    var writer = NDJSONWriter()
    writer.append(entry)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test("an entry is written with its fields in the order of the format")
  func order() {
    let entry = PlainEntry(
      operation: .put, entryClass: .cache, key: utf8("k"), value: utf8("v"), hash: utf8("h"),
      labels: [utf8("a"), utf8("b")], time: Timestamp(seconds: 0, nanoseconds: 5_000),
      maxAge: 300)
    #expect(
      line(entry)
        == #"{"op":"put","key":"k","value":"v","hash":"h","labels":["a","b"],"#
        + #""time":"1970-01-01T00:00:00.000005Z","max_age":300,"class":"cache"}"# + "\n")
    #expect(line(PlainEntry(key: utf8("k"))) == #"{"op":"put","key":"k","value":""}"# + "\n")
  }

  @Test("deletes and touches have no value")
  func withoutValue() {
    #expect(
      line(PlainEntry(operation: .delete, key: utf8("k"), value: utf8("v")))
        == #"{"op":"delete","key":"k"}"# + "\n")
    #expect(
      line(PlainEntry(operation: .touch, key: utf8("k"), hash: utf8("h"), maxAge: 0))
        == #"{"op":"touch","key":"k","hash":"h","max_age":0}"# + "\n")
  }

  @Test("a history has sequence and operation id in front, which an import passes over")
  func history() throws {
    var writer = NDJSONWriter(capacity: 100)
    writer.append(
      .init(.delete, sequence: .max, operationID: "a\".7"), key: utf8("k").rawSpan,
      value: RawSpan(), hash: RawSpan(), labels: [])
    let text = String(decoding: writer.bytes, as: UTF8.self)
    #expect(
      text == #"{"seq":18446744073709551615,"op_id":"a\".7","op":"delete","key":"k"}"# + "\n")
    #expect(try decode(text) == PlainEntry(operation: .delete, key: utf8("k")))
  }

  @Test("text is escaped only where JSON asks for it")
  func escapes() {
    #expect(
      line(PlainEntry(key: utf8("a\"b\\c/\u{7f}é\u{2028}😀"), value: Array(UInt8(0)..<0x21)))
        == #"{"op":"put","key":"a\"b\\c/"# + "\u{7f}é\u{2028}😀" + #"","value":""#
        + #"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#
        + #"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c"#
        + #"\u001d\u001e\u001f "}"# + "\n")
  }

  @Test("bytes that are no text are written as base64")
  func base64() {
    #expect(
      line(PlainEntry(key: [0xff], value: [0xc3, 0x28], hash: [0xed, 0xa0, 0x80]))
        == #"{"op":"put","key_base64":"/w==","value_base64":"wyg=","hash_base64":"7aCA"}"# + "\n")
  }

  @Test("labels that are no text are written as base64, in a list of their own")
  func labels() throws {
    let entries = [
      PlainEntry(key: utf8("k"), labels: [[0x61, 0xff, 0x62]]),
      PlainEntry(key: utf8("k"), labels: [utf8("a"), utf8("a\"b"), [0xff], [0xff, 0]]),
    ]
    #expect(
      line(entries[0]) == #"{"op":"put","key":"k","value":"","labels_base64":["Yf9i"]}"# + "\n")
    #expect(
      line(entries[1])
        == #"{"op":"put","key":"k","value":"","labels":["a","a\"b"],"labels_base64":["/w==","#
        + #""/wA="]}"# + "\n")
    for entry in entries { #expect(try decode(line(entry)) == entry) }
  }

  @Test("a large value full of control characters still gives a line that an import takes")
  func longEscapes() throws {
    let value = [UInt8](repeating: 1, count: 2 << 20)
    var writer = NDJSONWriter()
    writer.append(PlainEntry(key: utf8("k"), value: value))
    #expect(writer.bytes.count < value.count / 2 * 3)
    #expect(try decode(bytes: writer.bytes).value == value)
    // The same holds for the largest value, key and labels that there can be.
    let header = 6 * (Limits.keyBytes + Limits.labelsPerEntry * (Limits.labelBytes + 3)) + 4096
    #expect(
      Base64.encodedCount(Limits.valueBytes) + header < LineSplitter.maximumLineBytes)
  }
}
