import CacheCampaigns
import Testing

/// Each trial has a process of its own, of whose tasks the trial's queue runs all.
@Suite("Short campaigns against the caches")
struct CacheCampaignTests {
  @Test("a fetched value is stored only if its key was not written during the fetch")
  func reads() async {
    await #expect(processExitsWith: .success) { try await run(.reads, seeds: 200) }
  }

  @Test("an HTTP cache serves no response fetched before removeAll, in random call orders")
  func exchanges() async {
    await #expect(processExitsWith: .success) { try await run(.exchanges, seeds: 200) }
  }

  @Test("an HTTP cache serves only what RFC 9111 allows, over random header fields")
  func rules() async {
    await #expect(processExitsWith: .success) { try await run(.rules, seeds: 200) }
  }

  @Test("a store of bounded caches stays within its disk limit over random opens and closes")
  func launches() async {
    await #expect(processExitsWith: .success) { try await run(.launches, seeds: 2) }
  }
}

/// Runs the first seeds of a trial; `Tools/torture caches` goes on to others.
private func run(_ trial: CacheTrial, seeds: UInt64) async throws {
  try #require(await TaskQueue.install(), "the runtime has no hook for a queue of tasks")
  for seed in 1...seeds {
    do { _ = try await trial.run(seed: seed) } catch {
      print("\(trial.rawValue), seed \(seed): \(error)")
      throw error
    }
  }
}
