import Foundation
import Testing
import Tidemark
import TidemarkSwiftUI
import TidemarkTesting

@Suite("Suspending a store with its app")
@MainActor
struct StoreSuspensionTests {
  @Test("the last call decides, however fast they come", .store())
  func order() async throws {
    let store = try Store.underTest
    let suspension = StoreSuspension(store)
    suspension.leave()
    try await until { store.isSuspended }
    suspension.enter()
    suspension.leave()
    suspension.enter()
    try await until { !store.isSuspended }
    for _ in 0..<20 {
      suspension.leave()
      suspension.enter()
    }
    suspension.leave()
    try await until { store.isSuspended }
    try await Task.sleep(for: .milliseconds(20))
    #expect(store.isSuspended)
    suspension.enter()
    try await until { !store.isSuspended }
  }

  @Test("while another process has the store, resuming waits for it")
  func locked() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try await Store.open(at: folder.path)
    let suspension = StoreSuspension(store)
    suspension.leave()
    try await until { store.isSuspended }
    let other = try await Store.open(at: folder.path)
    suspension.enter()
    try await Task.sleep(for: .milliseconds(50))
    #expect(store.isSuspended)
    try await other.put("written/there", "1")
    try await other.close()
    try await until { !store.isSuspended }
    #expect(try store.value(forKey: "written/there") != nil)
    try await store.close()
  }

  @Test("errors are told", .store())
  func errors() async throws {
    let store = try Store.underTest
    var codes: [TidemarkError.Code?] = []
    let suspension = StoreSuspension(store) { codes.append(($0 as? TidemarkError)?.code) }
    try await store.close()
    suspension.leave()
    suspension.enter()
    try await until { codes.count == 2 }
    #expect(codes == [.closed, .closed])
  }
}
