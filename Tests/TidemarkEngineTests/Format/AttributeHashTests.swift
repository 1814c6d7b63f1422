import Testing

@testable import TidemarkEngine

@Suite("The validator hash in an entry")
struct AttributeHashTests {
  @Test(
    "every hash comes back as it was, hexadecimal text or not, at every length",
    arguments: ["0123456789abcdef", "0123456789ABCDEF", "09afg", "\u{0}\u{ff}", "1"])
  func roundTrip(_ alphabet: String) throws {
    let alphabet = Array(alphabet.utf8)
    for length in 0...Limits.hashBytes {
      var attributes = EntryAttributes()
      attributes.hash = (0..<length).map { alphabet[$0 % alphabet.count] }
      attributes.maxAge = 7
      var writer = ByteWriter()
      attributes.encode(into: &writer)
      #expect(try EntryAttributes(decoding: writer.bytes.rawSpan) == attributes)
    }
  }

  @Test("hexadecimal text takes half its length")
  func halved() {
    var attributes = EntryAttributes()
    attributes.hash = Array("d41d8cd98f00b204e9800998ecf8427e".utf8)
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    #expect(writer.count == 1 + 1 + 16)
  }
}
