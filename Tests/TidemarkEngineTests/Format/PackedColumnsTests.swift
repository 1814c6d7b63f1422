import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Packed columns of a locator")
struct PackedColumnsTests {
  /// Decodes one number the way a reader does.
  private func number(
    _ encoded: PackedColumns.Encoded, columns: Int, row: Int, column: Int
  ) throws -> UInt64 {
    let record = (row >> PackedColumns.groupShift) * columns + column
    let group = try PackedGroup(
      encoded.records.rawSpan, at: record * PackedColumns.recordBytes)
    let index = row % PackedColumns.groupRows
    guard group.bits > 0 else { return group.number(index) }
    let padded = encoded.remainders + [UInt8](repeating: 0xff, count: 8)
    return group.number(index, try padded.rawSpan.u64(at: group.byte(of: index)))
  }

  private static func columns(_ kind: Int, rows: Int, seed: UInt64) -> [UInt64] {
    var chance = SeededGenerator(seed: seed)
    var sum: UInt64 = 0
    return (0..<rows).map { row in
      switch kind {
      case 0: return UInt64(row) + 7
      case 1: return chance.next() % UInt64(rows)
      case 2: return chance.next() >> 16
      case 3: return row == rows / 2 ? 1 << 48 - 1 : 0
      default:
        sum += chance.next() % 300
        return sum
      }
    }
  }

  @Test("a number is read back by itself, whatever the columns hold", arguments: 0..<5)
  func roundTrip(kind: Int) throws {
    for rows in [0, 1, 2, 127, 128, 129, 3_000] {
      let first = Self.columns(kind, rows: rows, seed: 5)
      let second = Self.columns(4 - kind, rows: rows, seed: 6)
      let encoded = PackedColumns.encode([first, second])
      for row in 0..<rows {
        #expect(try number(encoded, columns: 2, row: row, column: 0) == first[row])
        #expect(try number(encoded, columns: 2, row: row, column: 1) == second[row])
      }
    }
  }

  @Test("numbers on a line take no remainders, and those near one take few bits")
  func sizes() {
    #expect(PackedColumns.encode([(0..<10_000).map { UInt64($0) * 3 }]).remainders.isEmpty)
    let near = PackedColumns.encode([Self.columns(4, rows: 10_000, seed: 7)])
    #expect(near.remainders.count < 10_000 * 3 / 2)
  }

  @Test("the remainders of a group lie within one chunk")
  func chunks() throws {
    let encoded = PackedColumns.encode([Self.columns(2, rows: 9_000, seed: 8)])
    let payload = FormatConstants.locatorChunkPayloadBytes
    #expect(encoded.remainders.count > 3 * payload)
    for group in 0..<PackedColumns.groups(rows: 9_000) {
      let record = try PackedGroup(
        encoded.records.rawSpan, at: group * PackedColumns.recordBytes)
      let last = min(PackedColumns.groupRows, 9_000 - group * PackedColumns.groupRows) - 1
      let end = (record.byte(of: last) * 8 + (last * record.bits) % 8 + record.bits - 1) / 8
      #expect(record.byte(of: 0) / payload == end / payload)
    }
  }
}
