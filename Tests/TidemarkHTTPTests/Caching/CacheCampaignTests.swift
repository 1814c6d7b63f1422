import CacheCampaigns
import Testing

@Suite("Short campaigns against the caches")
struct CacheCampaignTests {
  @Test("caches keep their promises over random calls", arguments: CacheTrial.allCases)
  func trials(_ trial: CacheTrial) async throws {
    let first = UInt64.random(in: 1...1_000_000)
    for seed in first..<first + (trial == .launches ? 2 : 40) {
      do { _ = try await trial.run(seed: seed) } catch {
        Issue.record("\(trial.rawValue), seed \(seed): \(error)")
        return
      }
    }
  }
}
