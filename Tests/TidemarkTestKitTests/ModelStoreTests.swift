import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("The model of a store")
struct ModelStoreTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func labels(_ texts: String...) -> Set<[UInt8]> { Set(texts.map(bytes)) }

  private func keys(_ rows: [ModelRow]) -> [String] {
    rows.map { String(decoding: $0.key, as: UTF8.self) }
  }

  private func filled() -> ModelStore {
    var model = ModelStore()
    model.put(bytes("b/1"), [1], labels: labels("x"))
    model.put(bytes("a"), [2], labels: labels("x", "y"))
    model.put(bytes("b/2"), [3], labels: labels("y"))
    model.put(bytes("b/1"), [4], labels: labels("z"))
    model.delete(bytes("a"))
    model.put(bytes("c"), [6])
    return model
  }

  @Test("the last put of a key counts, and a deleted key is absent")
  func latest() {
    let model = filled()
    #expect(model.lastSequence == 6)
    #expect(model.row(forKey: bytes("b/1"))?.value == [4])
    #expect(model.row(forKey: bytes("b/1"))?.labels == labels("z"))
    #expect(model.row(forKey: bytes("a")) == nil)
    #expect(model.count() == 3)
  }

  @Test("the state at a sequence is that of the entries up to it")
  func views() {
    let model = filled()
    #expect(model.count(at: 0) == 0)
    #expect(keys(model.rows(at: 3)) == ["a", "b/1", "b/2"])
    #expect(model.row(forKey: bytes("b/1"), at: 3)?.value == [1])
    #expect(model.row(forKey: bytes("a"), at: 4)?.value == [2])
  }

  @Test("queries by prefix, range and labels, in both directions, with a limit")
  func queries() {
    let model = filled()
    var query = ModelQuery()
    query.prefix = bytes("b/")
    #expect(keys(model.rows(query)) == ["b/1", "b/2"])
    query.isReversed = true
    #expect(keys(model.rows(query)) == ["b/2", "b/1"])
    query.limit = 1
    #expect(keys(model.rows(query)) == ["b/2"])
    query = ModelQuery()
    query.from = bytes("b/2")
    query.until = bytes("c")
    #expect(keys(model.rows(query)) == ["b/2"])
    query = ModelQuery()
    query.order = .sequence
    #expect(keys(model.rows(query)) == ["b/2", "b/1", "c"])
    query = ModelQuery()
    query.all = labels("x", "y")
    #expect(keys(model.rows(query, at: 3)) == ["a"])
    query = ModelQuery()
    query.any = labels("x", "y")
    query.none = labels("y")
    #expect(keys(model.rows(query, at: 3)) == ["b/1"])
    #expect(model.labels(at: 3).map(\.keys) == [2, 2])
  }

  @Test("keys are bytes: two spellings of one letter are two keys")
  func spelling() {
    var model = ModelStore()
    model.put(bytes("\u{e9}"), [1])
    model.put(bytes("e\u{301}"), [2])
    #expect(model.count() == 2)
    #expect(model.row(forKey: bytes("\u{e9}"))?.value == [1])
  }

  @Test("deletes and touches of absent keys make no entry, unless it is an import")
  func vain() {
    var model = ModelStore()
    #expect(model.delete([1]) == nil)
    #expect(model.touch([1]) == nil)
    #expect(model.lastSequence == 0)
    #expect(model.write([ModelEntry(.delete, [1])], keepingVainDeletes: true) == [1])
    let result = model.write([
      ModelEntry(.put, [2]), ModelEntry(.delete, [2]), ModelEntry(.touch, [2]),
      ModelEntry(.delete, [2]),
    ])
    #expect(result == [2, 3, nil, nil])
    #expect(model.batchEnds == [0, 1, 3])
  }

  @Test("a touch moves a key's sequence and nothing else")
  func touch() {
    var model = ModelStore()
    model.put([1], [9], labels: [[7]], hash: [3])
    #expect(model.touch([1]) == 2)
    #expect(
      model.row(forKey: [1])
        == ModelRow(
          key: [1], value: [9], labels: [[7]], hash: [3], valueSequence: 1, sequence: 2))
  }

  @Test("the history of a key and the entries since a sequence are those written")
  func history() {
    let model = filled()
    #expect(model.history(ofKey: bytes("b/1")).map(\.sequence) == [1, 4])
    #expect(model.history(ofKey: bytes("a")).map(\.operation) == [.put, .delete])
    #expect(model.entries(since: 4).map(\.sequence) == [5, 6])
  }

  @Test("a difference tells what came, what went and what changed, and undoing brings it back")
  func differences() {
    var model = filled()
    let differences = model.differences(from: 3, to: 6)
    #expect(differences.map(\.key) == [bytes("a"), bytes("b/1"), bytes("c")])
    #expect(differences.map { $0.before?.value } == [[2], [1], nil])
    #expect(differences.map { $0.after?.value } == [nil, [4], [6]])
    #expect(model.differences(from: 6, to: 6).isEmpty)
    let before = model.rows(at: 3)
    model.write(model.undo(since: 3))
    #expect(zip(model.rows(), before).allSatisfy { $0.holdsTheSame(as: $1) })
    #expect(model.mismatch(of: before) == nil)
  }

  @Test("a key that is written again with the same content is no difference")
  func sameContent() {
    var model = ModelStore()
    model.put([1], [2])
    model.put([1], [2])
    #expect(model.differences(from: 1, to: 2).isEmpty)
  }

  @Test("dropping history keeps the state, the sequences and nothing else")
  func dropHistory() {
    var model = filled()
    model.touch(bytes("c"))
    let before = model.rows()
    model.dropHistory()
    #expect(model.rows() == before)
    #expect(model.entries.map(\.sequence) == [3, 4, 6, 7])
    #expect(!model.canView(at: 6))
    #expect(model.canView(at: 7))
    #expect(model.put([9], []) == 8)
  }

  @Test("a date means the last sequence up to which nothing is later")
  func dates() {
    var model = ModelStore()
    for seconds in [10, 30, 20, 40] as [Int64] {
      model.put([UInt8(seconds)], [], time: Timestamp(seconds: seconds))
    }
    #expect(model.sequence(at: Timestamp(seconds: 9)) == 0)
    #expect(model.sequence(at: Timestamp(seconds: 25)) == 1)
    #expect(model.sequence(at: Timestamp(seconds: 30)) == 3)
    #expect(model.sequence(at: Timestamp(seconds: 99)) == 4)
  }

  @Test("a prefix is a whole number of batches, as far as was acknowledged at least")
  func prefixes() {
    var model = ModelStore()
    model.write([ModelEntry(.put, [1], value: [1]), ModelEntry(.put, [2], value: [1])])
    model.put([1], [2])
    model.delete([2])
    #expect(model.prefix(showing: []) == 0)
    #expect(model.prefix(showing: [], from: 1) == nil)
    #expect(model.prefix(showing: model.rows(at: 1)) == nil)
    #expect(model.prefix(showing: model.rows(at: 2)) == 2)
    #expect(model.prefix(showing: model.rows(at: 3), from: 3) == 3)
    #expect(model.prefix(showing: model.rows(at: 3), from: 4) == nil)
    #expect(model.prefix(showing: model.rows(at: 4).reversed()) == 4)
    let twice = model.rows(at: 2) + model.rows(at: 2)
    #expect(model.prefix(showing: twice) == nil)
    var wrong = model.rows(at: 3)
    wrong[0].value = [9]
    #expect(model.prefix(showing: wrong) == nil)
  }

  @Test("an entry that a crash took is forgotten, and sequences of others may pass")
  func truncate() {
    var model = filled()
    model.truncate(after: 4)
    #expect(model.row(forKey: bytes("a"))?.value == [2])
    #expect(model.batchEnds == [0, 1, 2, 3, 4])
    model.skip(to: 10)
    #expect(model.put(bytes("d"), []) == 11)
    #expect(model.batchEnds.suffix(2) == [10, 11])
  }

  @Test("a mismatch names the first row that is wrong, missing or too many")
  func mismatch() throws {
    let model = filled()
    var rows = model.rows()
    #expect(model.mismatch(of: rows) == nil)
    rows[1].value = [99]
    #expect(model.mismatch(of: rows)?.hasPrefix("row 1 is b/2 = c") == true)
    #expect(model.mismatch(of: Array(model.rows().dropLast()))?.hasPrefix("lacks c") == true)
    let more = model.rows() + [ModelRow(key: [0xff, 0x41], value: [])]
    #expect(model.mismatch(of: more)?.hasPrefix("has \\xffA") == true)
  }
}
