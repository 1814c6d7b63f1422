import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Attributes of entries")
struct EntryAttributesTests {
  private func expectRoundTrip(_ attributes: EntryAttributes, _ comment: Comment) throws {
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    #expect(writer.count <= EntryAttributes.maximumBytes)
    #expect(try EntryAttributes(decoding: writer.bytes.rawSpan) == attributes, comment)
  }

  @Test("hashes come back as they were given, lower-case hexadecimal ones in half the bytes")
  func hashes() throws {
    for text in ["0123abcd", "0f", "abc", "0123ABCD", "", "W/\"etag\"", "00"] {
      var attributes = EntryAttributes()
      attributes.hash = bytes(text)
      try expectRoundTrip(attributes, "\(text)")
    }
    var attributes = EntryAttributes()
    attributes.hash = bytes(String(repeating: "0123456789abcdef", count: 4))
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    #expect(writer.count == 2 - 1 + 1 + 32)
    try expectRoundTrip(attributes, "64 digits")
  }

  @Test("any set of fields comes back")
  func anyFields() throws {
    for seed in UInt64(1)...200 {
      var chance = SeededGenerator(seed: seed)
      var attributes = EntryAttributes()
      if chance.chance(0.5) {
        attributes.time = Timestamp(
          seconds: Int64(bitPattern: chance.next()) >> 20,
          nanoseconds: UInt32(chance.int(below: 1000)))
      }
      if chance.chance(0.5) { attributes.hash = chance.bytes(chance.int(in: 0...64)) }
      if chance.chance(0.5) { attributes.maxAge = UInt32(truncatingIfNeeded: chance.next()) }
      if chance.chance(0.5) { attributes.entryClass = .cache }
      if chance.chance(0.3) {
        attributes.base = .position(epoch: chance.next(), offset: chance.next())
      } else if chance.chance(0.5) {
        attributes.base = .operation(replica: chance.bytes(16), sequence: chance.next())
      }
      if chance.chance(0.5) {
        attributes.origin = EntryAttributes.Origin(
          replica: chance.bytes(16), sequence: chance.next())
      }
      if chance.chance(0.5) { attributes.priority = Int64(bitPattern: chance.next()) }
      for _ in 0..<chance.int(in: 0...16) { attributes.after.append(chance.next()) }
      if chance.chance(0.5) {
        attributes.attachment = AttachmentID(hash: chance.bytes(32), length: chance.next())
      }
      if chance.chance(0.5) { attributes.alias = chance.bytes(chance.int(in: 0...1024)) }
      if chance.chance(0.5) { attributes.schemaVersion = UInt32(chance.int(below: 1 << 32)) }
      if chance.chance(0.5) { attributes.generation = chance.bytes(chance.int(in: 0...64)) }
      if chance.chance(0.5) { attributes.atomicGroup = chance.next() }
      if chance.chance(0.5) {
        let labels = (0..<chance.int(in: 1...40)).map { _ in chance.bytes(chance.int(in: 1...60)) }
        attributes.former = FormerLabels(
          after: FormerLabels(forgottenThrough: chance.next() >> 1), labels, at: chance.next() >> 1,
          next: [])
      }
      if chance.chance(0.5) { attributes.recordType = UInt32(chance.int(below: 1 << 32)) }
      if chance.chance(0.5) { attributes.writerTime = chance.next() }
      try expectRoundTrip(attributes, "seed \(seed)")
    }
  }
}
