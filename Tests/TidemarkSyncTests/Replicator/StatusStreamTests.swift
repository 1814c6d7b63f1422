import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Streams of a replicator's status", .timeLimit(.minutes(20)))
struct StatusStreamTests {
  @Test("a reader can be cancelled while the status changes")
  func cancellation() async throws {
    let replicator = try memoryStore().replicator(named: "home", peer: try SwitchedPeer())
    let begun = Signal()
    let reader = Task { for await _ in replicator.statuses() { begun.raise() } }
    await begun.wait(beyond: 0)
    let ended = Lock(false)
    let end = Signal()
    // On threads, so that a deadlock ends the test and nothing else.
    Thread.detachNewThread {
      replicator.change {
        $0.phase = .connecting
        Thread.detachNewThread { reader.cancel() }
        // Until it is cancelling, which keeps others from resuming the reader.
        Thread.sleep(forTimeInterval: 0.1)
      }
      ended.withLock { $0 = true }
      end.raise()
    }
    let alarm = Task {
      try await Task.sleep(for: .seconds(120))
      end.raise()
    }
    await end.wait(beyond: 0)
    alarm.cancel()
    #expect(ended.withLock { $0 }, "the change waits for the reader, the reader for the change")
  }

  @Test("a stream gives every status in order, the last 16 to a slow reader")
  func order() async throws {
    let replicator = try memoryStore().replicator(named: "home", peer: try SwitchedPeer())
    var (quick, slow) = (
      replicator.statuses().makeAsyncIterator(), replicator.statuses().makeAsyncIterator()
    )
    #expect(await quick.next()?.pending.entries == 0)
    for number in 1...40 {
      replicator.change { $0.pending.entries = number }
      #expect(await quick.next()?.pending.entries == number)
    }
    for number in 25...40 { #expect(await slow.next()?.pending.entries == number) }
  }

  @Test("a stream ends with its replicator, and once its reader is cancelled")
  func ends() async throws {
    var replicator: Replicator? = try memoryStore().replicator(
      named: "home", peer: try SwitchedPeer())
    let statuses = try #require(replicator?.statuses())
    let cancelled = try #require(replicator?.statuses())
    let task = Task { for await _ in cancelled {} }
    task.cancel()
    await task.value
    replicator?.change { $0.phase = .connecting }
    let taken = Signal()
    let reader = Task {
      var phases: [SyncStatus.Phase] = []
      for await status in statuses {
        phases.append(status.phase)
        taken.raise()
      }
      return phases
    }
    // It waits for a third one, or is about to, when the replicator goes.
    await taken.wait(beyond: 1)
    replicator = nil
    #expect(await reader.value == [.stopped, .connecting])
  }
}
