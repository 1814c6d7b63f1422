import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Sets of sequences")
struct SequenceSetTests {
  @Test("a set of runs does what a set does", arguments: 1...20 as ClosedRange<UInt64>)
  func model(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var set = SequenceSet()
    var model: Set<UInt64> = []
    for _ in 0..<400 {
      let sequence = UInt64(generator.int(in: 1...60))
      switch generator.int(below: 11) {
      case 0..<5: #expect(set.insert(sequence) == model.insert(sequence).inserted, "seed \(seed)")
      case 5..<9: #expect(set.remove(sequence) == (model.remove(sequence) != nil), "seed \(seed)")
      case 9:
        let range = sequence...(sequence + UInt64(generator.int(below: 9)))
        set.remove(range)
        model.subtract(range)
      default:
        set.removeAll(through: sequence / 2)
        model = model.filter { $0 > sequence / 2 }
      }
      #expect(Array(set.sequences) == model.sorted(), "seed \(seed)")
      #expect(set.count == UInt64(model.count), "seed \(seed)")
      for run in zip(set.ranges, set.ranges.dropFirst()) {
        #expect(run.0.upperBound + 1 < run.1.lowerBound, "seed \(seed)")
      }
      var writer = ByteWriter()
      set.encode(into: &writer)
      var reader = ByteReader(writer.bytes.rawSpan)
      #expect(try SequenceSet(from: &reader) == set, "seed \(seed)")
    }
  }
}
