import Dispatch
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

/// Runs all tasks of this process one after the other, in the order in which they become ready.
///
/// Equal seeds then make equal steps, however busy the machine is, and it is known when all tasks
/// have come to rest. There is no way back, so that a process has nothing else to do: the queue
/// takes the place of the pool of threads, by the hook that the runtime has for that.
public final class TaskQueue: TaskExecutor {
  /// The hook's convention is Swift's, which passes two pointers as C does.
  private typealias Hook = @convention(c) (UnsafeRawPointer, UnsafeRawPointer) -> Void

  private struct State {
    var ready = 0
    /// Tasks that wait until no other one is ready.
    var resting: [CheckedContinuation<Void, Never>] = []
  }

  private static let shared = TaskQueue()

  private let queue = DispatchQueue(label: "tidemark-trial")
  private let state = Mutex(State())

  private init() {}

  /// Takes the place of the pool of threads.
  /// - Returns: false where the runtime has no hook for that.
  public static func install() async -> Bool {
    guard let hook = dlsym(dlopen(nil, RTLD_NOW), "swift_task_enqueueGlobal_hook") else {
      return false
    }
    hook.assumingMemoryBound(to: Hook?.self).pointee = { job, _ in
      TaskQueue.shared.add(unsafeBitCast(job, to: UnownedJob.self))
    }
    // This task comes to the queue, too.
    await Task.yield()
    return true
  }

  public func enqueue(_ job: consuming ExecutorJob) { add(UnownedJob(job)) }

  private func add(_ job: UnownedJob) {
    state.withLock { $0.ready += 1 }
    queue.async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
      let next = state.withLock { state in
        state.ready -= 1
        return state.ready == 0 ? state.resting.popLast() : nil
      }
      next?.resume()
    }
  }

  /// Lets other tasks run until they have come to rest: each one waits for something.
  static func rest() async {
    await withCheckedContinuation { task in
      let isAtRest = shared.state.withLock { state in
        if state.ready > 0 { state.resting.append(task) }
        return state.ready == 0
      }
      if isAtRest { task.resume() }
    }
  }
}
