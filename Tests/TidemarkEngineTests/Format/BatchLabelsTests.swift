import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Sets of labels in a batch") struct BatchLabelsTests {
  /// The labels of a set as text.
  private func labels(_ batch: OperationBatch, _ set: Int) -> [String] {
    var found: [String] = []
    for number in 0..<batch.labels.sets[set].count {
      let label = batch.labels.label(number, ofSet: set)
      found.append(String(decoding: [UInt8](copying: label), as: UTF8.self))
    }
    return found
  }

  @Test("a batch knows a label again that it had lately")
  func knownAgain() throws {
    var batch = OperationBatch()
    var sets: [Int] = []
    for name in ["a", "b", "c", "a", "c", "b", "b"] {
      sets.append(try batch.addLabel(bytes(name).rawSpan))
    }
    // The first two are looked for only as long as they are the last.
    #expect(sets.prefix(3) == [0, 1, 2])
    #expect(sets[4] == 2)
    #expect(sets[6] == sets[5])
    #expect(sets.map { labels(batch, $0) } == [["a"], ["b"], ["c"], ["a"], ["c"], ["b"], ["b"]])
    #expect(
      try batch.addLabelSet([bytes("b"), bytes("a"), bytes("b")]) == batch.labels.sets.count - 1)
    #expect(labels(batch, batch.labels.sets.count - 1) == ["a", "b"])
    #expect(try batch.addLabelSet([bytes("a"), bytes("b")]) == batch.labels.sets.count - 1)
  }

  @Test("a set that was taken back is not taken for one that came since")
  func takenBack() throws {
    var batch = OperationBatch()
    for name in ["a", "b"] { _ = try batch.addLabel(bytes(name).rawSpan) }
    let before = batch.mark
    _ = try batch.addLabel(bytes("c").rawSpan)
    batch.rollBack(to: before)
    #expect(batch.mark == before)
    let set = try batch.addLabelSet([bytes("d"), bytes("e")])
    #expect(set == 2)
    let again = try batch.addLabel(bytes("c").rawSpan)
    #expect(again == 3)
    #expect(labels(batch, again) == ["c"])
    batch.removeAll()
    #expect(try batch.addLabel(bytes("c").rawSpan) == 0)
    #expect(throws: TidemarkError.self) { try batch.addLabel(bytes("").rawSpan) }
    #expect(
      throws: TidemarkError.self
    ) { try batch.addLabel([UInt8](repeating: 1, count: 256).rawSpan) }
  }

  @Test(
    "labels of keys are right where single sets are noted in one step",
    arguments: 1...3 as ClosedRange<UInt64>)
  func counts(seed: UInt64) throws {
    let store = TestStore()
    let engine = try store.open()
    var random = SeededGenerator(seed: seed)
    var model: [String: [String]] = [:]
    for _ in 0..<40 {
      var batch = OperationBatch()
      for _ in 0..<20 {
        let key = "key \(Int.random(in: 0..<60, using: &random))"
        let set = (0..<Int.random(in: 0...2, using: &random)).map { _ in
          "label \(Int.random(in: 0..<5, using: &random))"
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
          try batch.add(.delete, key: bytes(key).rawSpan)
          model[key] = nil
          continue
        }
        let number =
          set.count == 1
          ? try batch.addLabel(bytes(set[0]).rawSpan) : try batch.addLabelSet(set.map { bytes($0) })
        try batch.add(.put, key: bytes(key).rawSpan, value: bytes("v").rawSpan, labelSet: number)
        model[key] = set
      }
      try engine.commit(batch)
      if Int.random(in: 0..<5, using: &random) == 0 { _ = try engine.checkpointer.writeRun() }
      for label in 0..<5 {
        let name = "label \(label)"
        let found = try engine.reader.reading.withLock { read in
          try read.index.count(ofLabel: bytes(name).rawSpan)
        }
        #expect(found == model.values.count { $0.contains(name) }, "seed \(seed), \(name)")
      }
    }
    try engine.close()
  }
}
