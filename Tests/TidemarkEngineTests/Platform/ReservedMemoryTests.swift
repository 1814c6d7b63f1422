import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Memory for the content of a file that is loaded in chunks.
@Suite("Reserved memory") struct ReservedMemoryTests {
  private struct Unreadable: Error {}
  private static let chunks = 400

  /// Which chunks were asked for at a time, while all are loaded in an order.
  private func loads(of order: [Int], failing: Int? = nil) throws -> [Range<Int>] {
    let memory = try ReservedMemory(byteCount: Self.chunks << 12 - 100, chunkShift: 12)
    var loads: [Range<Int>] = []
    for chunk in order where !memory.isLoaded(chunk) {
      do {
        try memory.load(chunk, in: 0..<Self.chunks) { (chunks, bytes) throws(Unreadable) in
          loads.append(chunks)
          #expect(chunks.contains(chunk))
          for number in chunks {
            if number == failing { throw Unreadable() }
            bytes.store(
              copying: [UInt8(number & 255)].rawSpan, at: (number - chunks.lowerBound) << 12)
          }
        }
      } catch { #expect(chunk == failing) }
    }
    for chunk in order {
      #expect(memory.isLoaded(chunk) == (chunk != failing))
      guard chunk != failing else { continue }
      #expect([UInt8](copying: memory.bytes(chunk << 12, 1)) == [UInt8(chunk & 255)])
    }
    #expect(memory.loadedBytes >> 12 == Self.chunks - (failing == nil ? 0 : 1))
    return loads
  }

  @Test("chunks are read one by one at first, later in groups of up to 16, and none twice")
  func groups() throws {
    var generator = SeededGenerator(seed: 4)
    let loads = try loads(of: Array(0..<Self.chunks).shuffled(using: &generator))
    #expect(loads.prefix(32).allSatisfy { $0.count == 1 })
    #expect(loads.count < Self.chunks / 2)
    #expect(loads.contains { $0.count > 4 })
    #expect(loads.allSatisfy { $0.count <= 16 })
    #expect(loads.reduce(0) { $0 + $1.count } == Self.chunks)
  }

  @Test("an unreadable chunk fails alone, and its group is read only once")
  func failing() throws {
    let loads = try loads(of: Array(0..<Self.chunks), failing: 205)
    #expect(loads.count { $0.contains(205) } == 2)
  }
}
