// Scenes and apps of SwiftUI, for Tools/check-apple. Signatures are those of
// developer.apple.com/documentation/swiftui (App, Scene, WindowGroup); nothing runs.

@MainActor @preconcurrency
public protocol App {
  associatedtype Body: Scene

  @SceneBuilder var body: Body { get }
  init()
}

extension App {
  public static func main() { fatalError("a stub") }
}

@MainActor @preconcurrency
public protocol Scene {
  associatedtype Body: Scene

  @SceneBuilder var body: Body { get }
}

extension Never: Scene {}

@resultBuilder
public enum SceneBuilder {
  nonisolated public static func buildExpression<Content: Scene>(_ content: Content) -> Content {
    content
  }
  nonisolated public static func buildBlock<Content: Scene>(_ content: Content) -> Content {
    content
  }
}

public struct WindowGroup<Content: View>: Scene {
  public typealias Body = Never

  nonisolated public init(@ViewBuilder content: () -> Content) {}
  public var body: Never { fatalError("a stub") }
}

/// The result of modifiers, which programs know as `some Scene`.
struct ModifiedScene: Scene {
  typealias Body = Never

  nonisolated init() {}
  var body: Never { fatalError("a stub") }
}

extension Scene {
  nonisolated public func onChange<V: Equatable>(
    of value: V, initial: Bool = false, _ action: @escaping (_ old: V, _ new: V) -> Void
  ) -> some Scene {
    ModifiedScene()
  }

  nonisolated public func environment<V>(
    _ keyPath: WritableKeyPath<EnvironmentValues, V>, _ value: V
  ) -> some Scene {
    ModifiedScene()
  }
}
