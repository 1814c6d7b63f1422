import Tidemark
import TidemarkTestKit

/// Readers whose answers come late, and whatever can be called meanwhile: the frame of a trial,
/// which makes the steps.
class LateTrial<Question: Sendable, Answer: Sendable, Read: Sendable> {
  typealias Waiting = Gate<Question, Answer>.Waiting

  struct Reader {
    let key: String
    /// The last step before it came that has said something about its key.
    let saidBefore: Int
    let task: Task<Read, any Error>
    var isCancelled = false
  }

  var chance: SeededGenerator
  let clock: ManualClock
  let store: Store
  let gate: Gate<Question, Answer>
  /// The last step that has said something about a key.
  var said: [String: Int] = [:]
  var counts: [String: Int] = [:]
  private(set) var step = 0
  private var readers: [Reader] = []
  private var log: [String] = []

  init(
    _ chance: SeededGenerator, _ store: Store, _ clock: ManualClock, _ gate: Gate<Question, Answer>
  ) {
    self.chance = chance
    self.store = store
    self.clock = clock
    self.gate = gate
  }

  /// An empty store on a disk of its own.
  static func makeStore(_ chance: inout SeededGenerator, _ clock: ManualClock) throws -> Store {
    let disk = SimulatedFileSystem(seed: chance.next())
    return try Store.openBlocking(
      at: "store", configuration: Store.Configuration().simulated(on: disk, clock: clock))
  }

  // MARK: Parts of a trial

  /// Makes a step.
  func act() async throws {}

  /// Answers a question.
  func answer(_ waiting: Waiting) async {}

  /// Looks at what there is when a step has been made.
  func look() async throws {}

  /// Looks at what a reader has got.
  func check(_ read: Read, _ reader: Reader) throws {}

  func close() async throws { try await store.close() }

  // MARK: The frame

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
    try await close()
    return counts
  }

  private func finish() async throws {
    while await gate.finished < readers.count {
      step += 1
      guard let question = await gate.open.first else {
        throw fail("a reader waits, and nothing is asked")
      }
      await answer(question)
      await TaskQueue.rest()
      try await look()
    }
    for reader in readers {
      do { try check(await reader.task.value, reader) } catch is CancellationError {
        guard reader.isCancelled else {
          throw fail("a reader of \(reader.key) was cancelled by another one")
        }
      }
    }
  }

  func fail(_ message: String) -> CacheViolation { CacheViolation(message, after: log) }

  func note(_ line: String) {
    log.append("\(step). \(line)")
    counts[String(line.prefix { $0 != " " }), default: 0] += 1
  }

  /// Lets a reader of a key come.
  func begin(_ key: String, _ read: @escaping @Sendable () async throws -> Read) {
    let gate = gate
    let task = Task {
      do {
        let answer = try await read()
        await gate.finish()
        return answer
      } catch {
        await gate.finish()
        throw error
      }
    }
    readers.append(Reader(key: key, saidBefore: said[key] ?? 0, task: task))
  }

  func cancelReader() {
    let waiting = readers.indices.filter { !readers[$0].isCancelled }
    guard let index = chance.pick(waiting) else { return }
    readers[index].isCancelled = true
    readers[index].task.cancel()
    note("cancel a reader of \(readers[index].key)")
  }
}
