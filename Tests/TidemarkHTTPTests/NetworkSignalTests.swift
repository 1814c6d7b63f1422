import Testing
import TidemarkEngine
import TidemarkSyncProtocol

@testable import TidemarkHTTP

@Suite("The network by a probe")
struct NetworkSignalTests {
  struct Failure: Error {}
  struct Done: Error {}

  @Test("a probe that fails or says no makes the network offline until it says yes")
  func probe() async {
    let signal = NetworkSignal()
    let answers = Lock<[Result<Bool, Failure>]>([
      .success(true), .failure(Failure()), .success(false), .success(true),
    ])
    let seen = Lock<[NetworkCondition]>([])
    await signal.follow(every: .seconds(9)) {
      try answers.withLock { $0.removeFirst() }.get()
    } sleep: { pause in
      #expect(pause == .seconds(9))
      seen.withLock { $0.append(signal.condition) }
      if answers.withLock({ $0.isEmpty }) { throw Done() }
    }
    #expect(seen.withLock { $0 } == [.unrestricted, .offline, .offline, .unrestricted])
  }

  @Test("a probe that is called off says nothing of the network")
  func cancellation() async {
    let signal = NetworkSignal()
    let task = Task {
      await signal.follow {
        withUnsafeCurrentTask { $0?.cancel() }
        throw CancellationError()
      }
    }
    await task.value
    #expect(signal.condition == .unrestricted)
  }
}
