import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Replicating with older copies")
struct RestoringTests {
  @Test("a server restored from an older copy gets back what it had lost")
  func server() throws {
    let world = try SyncWorld()
    try world.put(0, "kept", "1")
    try world.settle()
    let backup = try world.backUpServer()
    try world.put(0, "mine", "2")
    try world.put(1, "theirs", "3")
    try world.delete(1, "kept")
    try world.settle()
    let before = try world.serverState()
    try world.restoreServer(backup)
    #expect(try world.serverState() == ["kept": "1 "])
    try world.put(0, "later", "4")
    try world.settle()
    #expect(try world.serverState() == before.merging(["later": "4 "]) { $1 })
    try world.expectEqual()
  }

  @Test("a remote made anew gets everything, and takes nothing away")
  func anew() throws {
    let world = try SyncWorld()
    for number in 0..<20 { try world.put(number % 2, "key \(number)", "\(number)") }
    try world.settle()
    let before = try world.serverState()
    try world.restoreServer(nil)
    try world.put(1, "later", "x")
    try world.settle()
    #expect(try world.serverState() == before.merging(["later": "x "]) { $1 })
    try world.expectEqual()
  }

  @Test("a device restored from an older copy takes back what it had sent, and sends what is new")
  func device() throws {
    let world = try SyncWorld()
    try world.put(0, "kept", "1")
    try world.settle()
    let backup = try world.backUp(0)
    try world.put(0, "sent", "2")
    try world.put(0, "kept", "changed")
    try world.settle()
    try world.restore(0, backup)
    try world.put(0, "new", "3")
    try world.settle()
    #expect(
      try world.serverState() == ["kept": "changed ", "sent": "2 ", "new": "3 "])
    try world.expectEqual()
  }
}
