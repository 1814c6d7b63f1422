import CacheCampaigns
import Testing

@Suite("Short campaigns against the caches")
struct CacheCampaignTests {
  @Test("caches keep their promises over random calls", arguments: CacheTrial.allCases)
  func trials(_ trial: CacheTrial) async throws {
    // `Tools/torture caches` goes on to others.
    for seed in 1...UInt64(trial == .launches ? 2 : 40) {
      do { _ = try await trial.run(seed: seed) } catch {
        Issue.record("\(trial.rawValue), seed \(seed): \(error)")
        return
      }
    }
  }
}
