import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncServer
import TidemarkSyncTestKit
import TidemarkTestKit

@Suite("The conformance suite")
struct ConformanceTests {
  @Test("a peer in memory conforms", arguments: PeerConformance.checks)
  func memory(check: PeerConformance.Check) async throws {
    try await check.run(upon: try MemoryPeer(), patience: .seconds(1_200))
  }

  @Test("a store in a directory conforms", arguments: PeerConformance.checks)
  func directory(check: PeerConformance.Check) async throws {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-conformance-\(UUID())")
    defer { try? FileManager.default.removeItem(at: directory) }
    try await check.run(upon: try await StorePeer(at: directory.path), patience: .seconds(1_200))
  }

  @Test(
    "two servers over PostgreSQL conform, calls alternating",
    .enabled(if: PostgresTrial.url != nil),
    arguments: PeerConformance.checks)
  func postgres(check: PeerConformance.Check) async throws {
    let handlers = try PostgresTrial.feeds().map { try SyncHandler(feed: $0) }
    try await check.run(
      upon: AlternatingPeer(
        handlers.map { HandlerPeer($0, usesThreads: true, closesHandler: true) }),
      patience: .seconds(1_200))
  }

  @Test("a peer behind a network that only delays and doubles conforms where that is no matter")
  func flaky() async throws {
    let peer = FlakyPeer(
      try MemoryPeer(), seed: 5,
      weather: FlakyPeer.Weather(doubled: 0.5, delayed: 0.5, longestDelay: .milliseconds(1)))
    let check = try #require(
      PeerConformance.checks.first { $0.description.hasPrefix("a batch that is sent again") })
    try await check.run(upon: peer, patience: .seconds(1_200))
    #expect(peer.counts.doubled > 0 && peer.counts.delayed > 0)
  }
}
