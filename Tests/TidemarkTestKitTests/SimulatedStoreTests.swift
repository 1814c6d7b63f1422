import Testing
import Tidemark
import TidemarkTestKit

@Suite("A store on a simulated disk")
struct SimulatedStoreTests {
  private func run(seed: UInt64) async throws -> (trace: UInt64, time: Timestamp?) {
    let disk = SimulatedFileSystem(seed: seed)
    let clock = ManualClock()
    let configuration = Store.Configuration(durability: .durable).simulated(
      on: disk, clock: clock, random: SeededRandom(seed: seed))
    let store = try await Store.open(at: "notes", configuration: configuration)
    clock.advance(by: .seconds(60))
    try await store.put("note/1", "Buy milk")
    let time = try store.entry(forKey: "note/1")?.updated
    try await store.close()
    return (disk.traceHash, time)
  }

  @Test("a run with the same seed repeats call by call")
  func repeats() async throws {
    #expect(try await run(seed: 7).trace == run(seed: 7).trace)
    #expect(try await run(seed: 7).trace != run(seed: 8).trace)
  }

  @Test("a store's times are those of the clock that it was given")
  func clock() async throws {
    #expect(try await run(seed: 7).time == Timestamp(seconds: 1_767_225_660))
  }
}
