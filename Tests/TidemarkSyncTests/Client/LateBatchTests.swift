import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Batches that arrive late")
struct LateBatchTests {
  @Test("at a server made anew a batch is not taken behind that of a copy of its writer's store")
  func madeAnew() throws {
    let script = """
      world 1999 4 4000 262144
      write d0 : put s24 25 0 -
      exchange d0 4
      anew
      clone d0
      write d0 : put s58 60 0 -
      call d0
      write d839 : put s58' 61 0 -
      exchange d839 4
      """
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test(
    "at a server made anew, which has what they hold by another, they bring nothing back",
    arguments: [0, 1, 2, 3])
  func alone(batchesBefore: Int) throws {
    let world = try SyncWorld()
    for number in 0..<batchesBefore {
      try world.put(0, "before \(number)", "value")
      try world.settle(only: 0)
    }
    try world.put(0, "key", "value")
    let late = try #require(try world.nextPush(0))
    try world.restoreServer(nil)
    try world.settle()
    #expect(try world.get(1, "key") == "value")
    try world.delete(1, "key")
    try world.settle()
    // The name is not known there: the first of its batches is refused, later ones do not fit.
    do { _ = try world.server.handler().push(late) } catch let error as PeerError {
      #expect(error.kind == .leaseExpired)
    }
    try world.settle()
    #expect(try world.get(0, "key") == nil)
    #expect(try world.get(1, "key") == nil)
  }

  @Test(
    "at a restored server they bring nothing back, whenever the power goes off while that is found",
    arguments: 1...24)
  func powerCut(call: Int) throws {
    let world = try SyncWorld()
    try world.put(0, "first", "value")
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "lost", "value")
    try world.settle(only: 0)
    try world.put(0, "key", "value")
    let late = try #require(try world.nextPush(0))
    try world.restoreServer(backup)
    let device = world.devices[0]
    device.session.disconnect()
    device.disk.plan = .powerCut(atCall: call)
    do { try world.settle(only: 0) } catch is TidemarkError {}
    device.disk.plan = .none
    device.disk.powerCut()
    device.disk.restart(keeping: .loseAll)
    try world.reopen(0)
    try world.settle()
    #expect(try world.get(1, "key") == "value")
    try world.delete(1, "key")
    try world.settle()
    _ = try world.server.handler().push(late)
    try world.settle()
    #expect(try world.get(0, "key") == nil)
    #expect(try world.get(1, "key") == nil)
  }
}
