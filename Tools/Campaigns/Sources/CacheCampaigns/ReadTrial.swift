import Tidemark
import TidemarkTestKit

/// Reads through a cache whose source answers late, and whatever can be called meanwhile.
///
/// An answer is kept if, and only if, nothing was said about its key since its question was asked;
/// a reader never gets the answer to a question from before something that was said before it came.
final class ReadTrial {
  private typealias Source = Gate<SourceRequest, Fetched<[UInt8]>>

  /// Takes note of a question. It may have taken two steps until it came.
  private func note(_ waiting: Source.Waiting) {
    guard questions[waiting.id] == nil else { return }
    questions[waiting.id] = Question(
      key: waiting.question.key.text, earliest: step - 2, latest: step)
  }

  /// A question as far as it is known when it was asked: between two steps.
  private struct Question {
    let key: String
    let earliest: Int
    let latest: Int
  }

  private struct Reader {
    let key: String
    /// The last step before it came that has said something about its key.
    let saidBefore: Int
    let task: Task<CacheRead<[UInt8]>, any Error>
    var isCancelled = false
  }

  private var chance: SeededGenerator
  private let clock = ManualClock()
  private let store: Store
  private let cache: Cache<[UInt8]>
  private let gate = Source()
  private var questions: [Int: Question] = [:]
  private var readers: [Reader] = []
  /// The values that a key may have, as texts; nil for none.
  private var values: [String: Set<String?>] = [:]
  /// Keys that hold, or held, what the user wrote: nothing cached hides that.
  private var owned: Set<String> = []
  private var said: [String: Int] = [:]
  /// The last step that has said something about labels: nobody knows yet whether an answer under
  /// way has them.
  private var saidOfLabels = 0
  /// The latest question about each key that was answered.
  private var newest: [String: Int] = [:]
  /// The last step in which a source has said that a key's value is still right.
  private var renewed: [String: Int] = [:]
  /// The last step in which an answer about a key came.
  private var answered: [String: Int] = [:]
  private var step = 0
  private var log: [String] = []
  private var counts: [String: Int] = [:]

  private static let keys = ["a", "b", "c"]
  private static let labels: [String: EntryLabel] = ["a": "odd", "b": "even", "c": "odd"]

  init(_ seeded: SeededGenerator) throws {
    var chance = seeded
    let disk = SimulatedFileSystem(seed: chance.next())
    store = try Store.openBlocking(
      at: "store", configuration: Store.Configuration().simulated(on: disk, clock: clock))
    cache = try store.cache(
      prefix: "items/", policy: CachePolicy(maxAge: .seconds(60), capacity: nil))
    self.chance = chance
  }

  func run(_ steps: Int) async throws -> [String: Int] {
    do {
      for _ in 0..<steps {
        step += 1
        try await act()
        await TaskQueue.rest()
        try await look()
      }
      try await finish()
    } catch {
      await gate.shut()
      for reader in readers { reader.task.cancel() }
      throw error
    }
    try await store.close()
    return counts
  }

  private func fail(_ message: String) -> CacheViolation { CacheViolation(message, after: log) }

  private func note(_ line: String) {
    log.append("\(step). \(line)")
    counts[String(line.prefix { $0 != " " }), default: 0] += 1
  }

  // MARK: Steps

  private func act() async throws {
    let key = chance.pick(Self.keys) ?? "a"
    let open = await gate.open
    switch chance.int(below: 16) {
    case 0..<5: read(key)
    case 5..<9:
      if let question = chance.pick(open) { await answer(question) } else { read(key) }
    case 9:
      clock.advance(by: .seconds(chance.pick([1, 50, 90]) ?? 1))
      note("wait")
    case 10:
      let waiting = readers.indices.filter { !readers[$0].isCancelled }
      guard let index = chance.pick(waiting) else { return }
      readers[index].isCancelled = true
      readers[index].task.cancel()
      note("cancel a reader of \(readers[index].key)")
    default: try await say(key)
    }
  }

  private func read(_ key: String) {
    let policies: [ReadPolicy] = [
      .cachedThenRefresh, .staleWhileRevalidate, .cacheFirst, .networkFirst, .networkOnly,
      .automatic,
    ]
    let policy = chance.pick(policies) ?? .automatic
    let (cache, gate) = (cache, gate)
    let task = Task {
      do {
        let read = try await cache.read(
          key, policy, from: CacheSource(timeout: nil) { try await gate.ask($0) })
        await gate.finish()
        return read
      } catch {
        await gate.finish()
        throw error
      }
    }
    readers.append(Reader(key: key, saidBefore: said[key] ?? 0, task: task))
    note("read \(key) \(policy)")
  }

  private func answer(_ question: Source.Waiting) async {
    note(question)
    let key = question.question.key.text
    let text = "\(key) #\(question.id)"
    let result: Result<Fetched<[UInt8]>, any Error>
    var value: String?? = nil
    switch chance.int(below: 10) {
    case 0: result = .failure(CacheViolation("the source fails"))
    case 1, 2:
      result = .success(.absent())
      value = .some(nil)
    case 3 where question.question.hash != nil:
      result = .success(.notModified())
      renewed[key] = step
    default:
      let labels = Self.labels[key].map { [$0] } ?? []
      result = .success(
        .value(
          Array(text.utf8), hash: [UInt8(question.id & 255)], labels: labels, maxAge: .seconds(60)))
      value = .some(text)
    }
    note("answer \(text) with \(result)")
    await gate.answer(question.id, result)
    guard let value, let known = questions[question.id], !owned.contains(key) else { return }
    let last = said[key] ?? 0
    guard last <= known.latest else { return }
    // The answer to another question that was under way at the same time may stay.
    let isLatest = question.id > newest[key] ?? -1 && answered[key] ?? 0 < known.earliest
    if last <= known.earliest, isLatest {
      values[key] = [value]
    } else {
      values[key, default: [nil]].insert(value)
    }
    newest[key] = max(question.id, newest[key] ?? -1)
    answered[key] = step
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
      values[key] = [text]
      said[key] = step
    default:
      // A delete of what is not there is nothing; else the key stays the user's own.
      guard try store.contains(full) else { return }
      note("delete \(key)")
      try await store.delete(full)
      owned.insert(key)
      values[key] = [nil]
      said[key] = step
    }
  }

  /// The user's own value stays.
  private func put(_ key: String, _ text: String) async throws {
    said[key] = step
    let labels = Self.labels[key].map { [$0] } ?? []
    do {
      try await cache.put(key, Array(text.utf8), labels: labels)
      values[key] = [text]
    } catch {
      guard error.code == .conflict, owned.contains(key) else { throw error }
    }
  }

  private func gone(_ keys: [String]) {
    for key in keys {
      said[key] = step
      if !owned.contains(key) { values[key] = [nil] }
    }
  }

  // MARK: Checks

  private func look() async throws {
    let open = await gate.open
    for waiting in open where questions[waiting.id] == nil {
      let key = waiting.question.key.text
      note(waiting)
      let other = open.first { other in
        other.id != waiting.id && other.question.key.text == key
          && questions[other.id].map { max(said[key] ?? 0, saidOfLabels) < $0.earliest } == true
      }
      if other != nil { throw fail("two questions about \(key) are under way at a time") }
    }
    for key in Self.keys { try look(at: key) }
  }

  private func look(at key: String) throws {
    let expected = values[key, default: [nil]]
    let found = try cache.store(key, in: store)
    guard expected.contains(found) else {
      throw fail("\(key) is \(found ?? "gone"), not \(expected)")
    }
  }

  private func finish() async throws {
    var idle = 0
    while await gate.finished < readers.count {
      step += 1
      await TaskQueue.rest()
      try await look()
      idle += 1
      if idle > 20_000 { throw fail("a reader waits, and nothing is asked") }
      guard let question = await gate.open.first else { continue }
      idle = 0
      await answer(question)
    }
    for reader in readers {
      let read: CacheRead<[UInt8]>
      do { read = try await reader.task.value } catch is CancellationError {
        if !reader.isCancelled {
          throw fail("a reader of \(reader.key) was cancelled by another one")
        }
        continue
      }
      try check(read, reader)
    }
  }

  private func check(_ read: CacheRead<[UInt8]>, _ reader: Reader) throws {
    guard let value = read.fetched?.value else { return }
    let text = String(decoding: value, as: UTF8.self)
    guard let mark = text.firstIndex(of: "#"), let id = Int(text[text.index(after: mark)...]),
      let question = questions[id]
    else { return }
    // A `notModified` answer makes an older value right again.
    if question.latest < reader.saidBefore, renewed[reader.key] ?? 0 < reader.saidBefore {
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
