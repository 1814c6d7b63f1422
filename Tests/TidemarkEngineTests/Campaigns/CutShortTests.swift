import Testing
@_spi(Campaigns) import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Campaigns that are told to stop")
struct CutShortTests {
  @Test("a seed ends before all of it is done, and says so", arguments: Campaign.allCases)
  func stops(campaign: Campaign) throws {
    var left = 3
    let report = try campaign.run(campaign.script(seed: 1)) {
      left -= 1
      return left < 0
    }
    // A crash in a recovery counts beside the one before it.
    #expect(report.isCutShort && report.runs <= 40, "\(report.runs) runs")
  }
}
