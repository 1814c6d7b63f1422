import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Labels that a key had before")
struct FormerLabelsTests {
  @Test("a label stays until the key has it again, with the entry that left it out last")
  func comesAndGoes() {
    let (a, b) = (bytes("a"), bytes("b"))
    let first = FormerLabels(after: FormerLabels(), [a, b], at: 3, next: [b])
    #expect(first.placed(at: 5).rows == [.init(label: a, left: 5)])
    let second = FormerLabels(after: first, [b], at: 5, next: [])
    #expect(second.placed(at: 9).rows == [.init(label: a, left: 5), .init(label: b, left: 9)])
    let third = FormerLabels(after: second, [], at: 9, next: [a])
    #expect(third.placed(at: 12).rows == [.init(label: b, left: 9)])
    let fourth = FormerLabels(after: third, [a], at: 12, next: [b])
    #expect(fourth.placed(at: 15).rows == [.init(label: a, left: 15)])
    #expect(FormerLabels(after: FormerLabels(), [a], at: 1, next: [a]).isEmpty)
  }

  @Test("an entry of the same batch counts as the one that comes after it")
  func sameBatch() {
    let first = FormerLabels(after: FormerLabels(), [bytes("a")], at: 3, next: [])
    let second = FormerLabels(after: first, [], at: 0, next: [bytes("b")])
    #expect(second.placed(at: 8).rows == [.init(label: bytes("a"), left: 8)])
  }

  @Test("the oldest are forgotten when there are too many, and that is told")
  func bounded() {
    var former = FormerLabels()
    for number in 1...100 as ClosedRange<UInt64> {
      former = FormerLabels(after: former, [bytes("label \(number)")], at: number, next: [])
    }
    let placed = former.placed(at: 101)
    #expect(placed.rows.map(\.left) == Array(70...101))
    #expect(placed.forgottenThrough == 69)
    let many = (0..<100).map { bytes("label \($0)") }
    let atOnce = FormerLabels(after: former, many, at: 101, next: []).placed(at: 102)
    #expect(atOnce.rows.count == FormerLabels.mostRows && atOnce.forgottenThrough == 102)
    let long = [UInt8](repeating: 97, count: 700)
    let wide = FormerLabels(after: FormerLabels(), [long, [98] + long], at: 1, next: [])
    #expect(wide.rows.count == 1 && wide.forgottenThrough == 0)
  }

  @Test("damaged ones are refused")
  func damaged() throws {
    var attributes = EntryAttributes()
    attributes.former = FormerLabels(after: FormerLabels(), [bytes("label")], at: 1, next: [])
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    for count in 1..<writer.count {
      #expect(throws: FormatError.self) {
        try EntryAttributes(decoding: Array(writer.bytes.prefix(count)).rawSpan)
      }
    }
    var tooMany = ByteWriter()
    tooMany.varint(UInt64(1 << 16))
    tooMany.varint(33)
    for _ in 0..<33 * 3 { tooMany.u8(1) }
    tooMany.varint(0)
    #expect(throws: FormatError.self) { try EntryAttributes(decoding: tooMany.bytes.rawSpan) }
  }

  @Test("none at all is another thing than nobody having looked")
  func none() throws {
    var attributes = EntryAttributes()
    attributes.former = FormerLabels()
    var writer = ByteWriter()
    attributes.encode(into: &writer)
    #expect(try EntryAttributes(decoding: writer.bytes.rawSpan).former == FormerLabels())
    #expect(EntryAttributes().former == nil)
  }
}
