import Tidemark
import TidemarkTestKit

/// Reads through a cache whose source answers late, and whatever can be called meanwhile.
///
/// An answer is kept if, and only if, nothing was said about its key since its question was asked,
/// and no later question was answered; a reader never gets the answer to a question from before
/// something that was said before it came.
final class ReadTrial: LateTrial<SourceRequest, FetchedValue<[UInt8]>, CacheRead<[UInt8]>> {
  private let cache: Cache<[UInt8]>
  /// The step of the trial in which the cache asked its source, by the number of the question.
  private var asked: [Int: Int] = [:]
  /// The values that keys have, as texts.
  private var values: [String: String] = [:]
  /// Keys that hold, or held, what the user wrote: nothing cached hides that.
  private var owned: Set<String> = []
  /// The last step that has said something about labels: nobody knows yet whether an answer under
  /// way has them.
  private var saidOfLabels = 0
  /// The latest question about each key whose answer was kept.
  private var newest: [String: Int] = [:]
  /// The last step in which an answer about each key was kept.
  private var kept: [String: Int] = [:]
  /// The last step in which a source has said that a key's value is still right.
  private var renewed: [String: Int] = [:]

  private static let keys = ["a", "b", "c"]
  private static let labels: [String: EntryLabel] = ["a": "odd", "b": "even", "c": "odd"]

  init(_ seeded: SeededGenerator) throws {
    var chance = seeded
    let clock = ManualClock()
    let store = try Self.makeStore(&chance, clock)
    cache = try store.cache(
      prefix: "items/", policy: CachePolicy(maxAge: .seconds(60), capacity: nil))
    super.init(chance, store, clock, Gate())
  }

  // MARK: Steps

  override func act() async throws {
    let key = chance.pick(Self.keys) ?? "a"
    let open = await gate.open
    switch chance.int(below: 16) {
    case 0..<5: read(key)
    case 5..<9:
      if let question = chance.pick(open) { await answer(question) } else { read(key) }
    case 9:
      clock.advance(by: .seconds(chance.pick([1, 50, 90]) ?? 1))
      note("wait")
    case 10: cancelReader()
    default: try await say(key)
    }
  }

  private func read(_ key: String) {
    let policies: [ReadPolicy] = [
      .staleWhileRevalidate, .cacheFirst, .networkFirst, .networkOnly, .automatic,
    ]
    let policy = chance.pick(policies) ?? .automatic
    let (cache, gate) = (cache, gate)
    begin(key) {
      try await cache.read(key, policy, from: CacheSource(timeout: nil) { try await gate.ask($0) })
    }
    note("read \(key) \(policy)")
  }

  override func answer(_ question: Waiting) async {
    let key = question.question.key.text
    let text = "\(key) #\(question.id)"
    let result: Result<FetchedValue<[UInt8]>, any Error>
    switch chance.int(below: 10) {
    case 0: result = .failure(CacheViolation("the source fails"))
    case 1, 2:
      result = .success(.absent())
      if isKept(question.id, key) { values[key] = nil }
    case 3 where question.question.hash != nil:
      result = .success(.notModified())
      renewed[key] = step
      // It is about the value that was there when the question was asked.
      if kept[key] ?? 0 <= asked[question.id] ?? 0 { _ = isKept(question.id, key) }
    default:
      let labels = Self.labels[key].map { [$0] } ?? []
      result = .success(
        .value(
          Array(text.utf8), hash: [UInt8(question.id & 255)], labels: labels, maxAge: .seconds(60)))
      if isKept(question.id, key) { values[key] = text }
    }
    note("answer \(text) with \(result)")
    await gate.answer(question.id, result)
  }

  /// Takes note of an answer, if it is to be kept.
  private func isKept(_ id: Int, _ key: String) -> Bool {
    guard !owned.contains(key), said[key] ?? 0 <= asked[id] ?? 0, id > newest[key] ?? -1 else {
      return false
    }
    newest[key] = id
    kept[key] = step
    return true
  }

  /// Says something about keys.
  private func say(_ key: String) async throws {
    let text = "\(key) put at \(step)"
    let full = "items/" + key
    switch chance.int(below: 20) {
    case 0...4:
      note("put \(key)")
      try await put(key, text)
    case 5...8:
      note("remove \(key)")
      _ = try await cache.remove(key)
      gone([key])
    case 9, 10:
      note("removeAll")
      _ = try await cache.removeAll()
      gone(Self.keys)
    case 11, 12:
      note("removeLabels odd")
      saidOfLabels = step
      _ = try await cache.removeAll(labels: .all("odd"))
      gone(Self.keys.filter { Self.labels[$0] == "odd" })
    case 13, 14:
      note("markStale \(key)")
      try await cache.markStale(keys: [Key(key)])
      said[key] = step
    case 15, 16:
      note("markLabels even")
      saidOfLabels = step
      try await cache.markStale(labels: .all("even"))
      said["b"] = step
    case 17:
      note("own \(key)")
      try await store.put(full, text)
      owned.insert(key)
      values[key] = text
      said[key] = step
    default:
      // A delete of what is not there is nothing; else the key stays the user's own.
      guard try store.contains(full) else { return }
      note("delete \(key)")
      try await store.delete(full)
      owned.insert(key)
      values[key] = nil
      said[key] = step
    }
  }

  /// The user's own value stays.
  private func put(_ key: String, _ text: String) async throws {
    said[key] = step
    let labels = Self.labels[key].map { [$0] } ?? []
    do {
      try await cache.put(key, Array(text.utf8), labels: labels)
      values[key] = text
    } catch {
      guard error.code == .conflict, owned.contains(key) else { throw error }
    }
  }

  private func gone(_ keys: [String]) {
    for key in keys {
      said[key] = step
      if !owned.contains(key) { values[key] = nil }
    }
  }

  // MARK: Checks

  override func look() async throws {
    let open = await gate.open
    for waiting in open where asked[waiting.id] == nil {
      let key = waiting.question.key.text
      asked[waiting.id] = step
      let other = open.first { other in
        other.id != waiting.id && other.question.key.text == key
          && max(said[key] ?? 0, saidOfLabels) <= asked[other.id] ?? step
      }
      if other != nil { throw fail("two questions about \(key) are under way at a time") }
    }
    for key in Self.keys { try look(at: key) }
  }

  private func look(at key: String) throws {
    let found = try cache.store(key, in: store)
    guard found == values[key] else {
      throw fail("\(key) is \(found ?? "gone"), not \(values[key] ?? "gone")")
    }
  }

  override func check(_ read: CacheRead<[UInt8]>, _ reader: Reader) throws {
    guard let value = read.fetched?.value else { return }
    let text = String(decoding: value, as: UTF8.self)
    guard let mark = text.firstIndex(of: "#"), let id = Int(text[text.index(after: mark)...]),
      let asked = asked[id]
    else { return }
    // A `notModified` answer makes an older value right again.
    if asked < reader.saidBefore, renewed[reader.key] ?? 0 < reader.saidBefore {
      throw fail(
        "a reader of \(reader.key) got \(text), which was asked before step \(reader.saidBefore)")
    }
    counts["fetched", default: 0] += 1
  }
}

extension Cache<[UInt8]> {
  /// The value under a key, read past the cache's notes of uses.
  fileprivate func store(_ key: String, in store: Store) throws -> String? {
    try store.value(forKey: prefix.bytes + Array(key.utf8)).map {
      String(decoding: $0, as: UTF8.self)
    }
  }
}
