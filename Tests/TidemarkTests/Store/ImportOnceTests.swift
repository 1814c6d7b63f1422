import Testing
import Tidemark
import TidemarkTestKit

@Suite("Imports that run once", .timeLimit(.minutes(20)))
struct ImportOnceTests {
  private struct Failure: Error {}

  /// Imports the numbers below a count, and fails at one of them.
  private func run(
    _ store: Store, count: Int = 2_500, value: String = "old", failingAt stop: Int? = nil
  ) async throws -> Bool {
    try await store.importOnce(named: "numbers") { importer in
      for number in 0..<count {
        if number == stop { throw Failure() }
        try await importer.write { try $0.put("number/\(number)", value) }
      }
    }
  }

  @Test("an import runs once, and its mark is no key that scans, counts and changes show")
  func once() async throws {
    let store = try Machine().open()
    #expect(try await run(store))
    try await store.put("number/7", "edited")
    #expect(try await !run(store))
    #expect(try store.text(forKey: "number/7") == "edited")
    #expect(try store.found().count == 2_500)
    #expect(try store.count(EntryQuery()) == 2_500)
    #expect(try await store.importOnce(named: "nothing") { _ in })
    #expect(try await !store.importOnce(named: "nothing") { _ in })
    try await store.close()
  }

  @Test("an import that fails keeps its full batches, and runs again from the beginning")
  func failed() async throws {
    let machine = Machine()
    var store = try machine.open()
    await #expect(throws: Failure.self) { try await run(store, failingAt: 2_400) }
    #expect(try store.found().count == 2_000)
    try await store.close()
    store = try machine.open()
    #expect(try await run(store, value: "again"))
    #expect(try store.found().count == 2_500)
    #expect(try store.text(forKey: "number/0") == "again")
    try await store.close()
  }

  @Test(
    "an import that has returned survives a power cut; one that is cut off runs again",
    arguments: [nil, 0, 1, 999, 1_000, 2_001, 2_499])
  func powerCut(stop: Int?) async throws {
    let machine = Machine()
    var store = try machine.open()
    _ = try? await run(store, failingAt: stop)
    machine.disk.powerCut()
    machine.disk.restart(keeping: .loseAll)
    store = try machine.open()
    #expect(try await run(store, value: "again") == (stop != nil))
    #expect(try store.found().count == 2_500)
    #expect(try store.text(forKey: "number/2499") == (stop == nil ? "old" : "again"))
    try await store.close()
    store = try machine.open()
    #expect(try await !run(store))
    try await store.close()
  }

  @Test("of many calls at once one runs, and the others wait until it has ended")
  func atOnce() async throws {
    let store = try Machine().open(usesThreads: true)
    let ran = await withTaskGroup(of: Int.self) { group in
      for call in 0..<8 {
        group.addTask {
          // Calls that fail let the next one run.
          guard let ran = try? await run(store, failingAt: call < 3 ? 1_500 : nil) else { return 0 }
          #expect((try? store.found().count) == 2_500)
          return ran ? 1 : 0
        }
      }
      return await group.reduce(0, +)
    }
    #expect(ran == 1)
    try await store.close()
  }

  @Test("a call that waits can be cancelled, and other names and stores do not wait")
  func cancelled() async throws {
    let (store, other) = (try Machine().open(usesThreads: true), try Machine().open())
    let waiter = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await run(store)
    }
    try await store.importOnce(named: "numbers") { importer in
      waiter.cancel()
      await #expect(throws: TidemarkError.self) { try await waiter.value }
      let ran = try await run(other)
      let ranBeside = try await store.importOnce(named: "others") { _ in }
      #expect(ran && ranBeside)
    }
    try await store.close()
    try await other.close()
  }

  @Test("a large import is split by bytes, and names are bounded")
  func bounds() async throws {
    let store = try Machine().open()
    let megabyte = [UInt8](repeating: 1, count: 1 << 20)
    await #expect(throws: Failure.self) {
      try await store.importOnce(named: "large") { importer in
        for number in 0..<3 { try await importer.write { try $0.put("\(number)", megabyte) } }
        throw Failure()
      }
    }
    #expect(try store.found() == ["0", "1", "2"])
    for name in ["", String(repeating: "n", count: 256)] {
      #expect(await code { try await store.importOnce(named: name) { _ in } } == .invalidArgument)
    }
    try await store.close()
  }

  private final class OldNote {
    let text: String

    init(_ text: String) { self.text = text }
  }

  @Test("the closure runs where its caller does, with objects that no other thread may touch")
  @MainActor func isolation() async throws {
    let store = try Machine().open(usesThreads: true)
    let olds = ["a", "b"].map(OldNote.init)
    try await store.importOnce(named: "notes") { importer in
      MainActor.assertIsolated()
      for old in olds {
        try await importer.write { try $0.put("note/\(old.text)", old.text) }
        MainActor.assertIsolated()
      }
    }
    #expect(try store.found() == ["note/a", "note/b"])
    try await store.close()
  }
}
