// A stub of Apple's framework SwiftUI, which Tools/check-apple compiles against on Linux: the parts
// that property wrappers and view modifiers need. Signatures are those of
// developer.apple.com/documentation/swiftui. Nothing runs, so every body is `fatalError`.

@MainActor @preconcurrency
public protocol View {
  associatedtype Body: View

  @ViewBuilder var body: Body { get }
}

extension Never: View {
  public var body: Never { fatalError("a stub") }
}

@resultBuilder
public enum ViewBuilder {
  nonisolated public static func buildBlock() -> EmptyView { EmptyView() }
  nonisolated public static func buildBlock<Content: View>(_ content: Content) -> Content {
    content
  }
  nonisolated public static func buildBlock<each Content: View>(
    _ content: repeat each Content
  ) -> TupleView<(repeat each Content)> {
    TupleView((repeat each content))
  }
  nonisolated public static func buildExpression<Content: View>(_ content: Content) -> Content {
    content
  }
  nonisolated public static func buildIf<Content: View>(_ content: Content?) -> Content? {
    content
  }
  nonisolated public static func buildEither<First: View, Second: View>(
    first: First
  ) -> _ConditionalContent<First, Second> {
    _ConditionalContent()
  }
  nonisolated public static func buildEither<First: View, Second: View>(
    second: Second
  ) -> _ConditionalContent<First, Second> {
    _ConditionalContent()
  }
}

public struct TupleView<T>: View {
  public typealias Body = Never

  nonisolated public init(_ value: T) {}
  public var body: Never { fatalError("a stub") }
}

public struct _ConditionalContent<TrueContent, FalseContent> {
  nonisolated init() {}
}

extension _ConditionalContent: View where TrueContent: View, FalseContent: View {
  public var body: Never { fatalError("a stub") }
}

extension Optional: View where Wrapped: View {
  public var body: Never { fatalError("a stub") }
}

public struct EmptyView: View, Sendable {
  public typealias Body = Never

  nonisolated public init() {}
  public var body: Never { fatalError("a stub") }
}

public struct Text: View, Sendable {
  public typealias Body = Never

  nonisolated public init(_ content: some StringProtocol) {}
  public var body: Never { fatalError("a stub") }
}

@MainActor @preconcurrency
public protocol ViewModifier {
  associatedtype Body: View
  typealias Content = ModifiedView<Self>

  @ViewBuilder func body(content: Content) -> Body
}

/// `_ViewModifier_Content`, which programs call `Content`.
public struct ModifiedView<Modifier: ViewModifier>: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

@MainActor @preconcurrency
public protocol PreviewModifier {
  associatedtype Context = Void
  associatedtype Body: View
  typealias Content = PreviewModifierContent

  static func makeSharedContext() async throws -> Context
  @ViewBuilder func body(content: Content, context: Context) -> Body
}

public struct PreviewModifierContent: View {
  public typealias Body = Never

  public var body: Never { fatalError("a stub") }
}

extension View {
  nonisolated public func modifier(_ modifier: some ViewModifier) -> some View { EmptyView() }

  nonisolated public func environment<V>(
    _ keyPath: WritableKeyPath<EnvironmentValues, V>, _ value: V
  ) -> some View {
    EmptyView()
  }

  nonisolated public func onAppear(perform action: (() -> Void)? = nil) -> some View { EmptyView() }

  nonisolated public func onDisappear(perform action: (() -> Void)? = nil) -> some View {
    EmptyView()
  }

  nonisolated public func onChange<V: Equatable>(
    of value: V, initial: Bool = false, _ action: @escaping (_ old: V, _ new: V) -> Void
  ) -> some View {
    EmptyView()
  }

  nonisolated public func onChange<V: Equatable>(
    of value: V, initial: Bool = false, _ action: @escaping () -> Void
  ) -> some View {
    EmptyView()
  }

  nonisolated public func task(
    priority: TaskPriority = .userInitiated,
    @_inheritActorContext _ action: @escaping @Sendable () async -> Void
  ) -> some View {
    EmptyView()
  }

  nonisolated public func task<T: Equatable>(
    id value: T, priority: TaskPriority = .userInitiated,
    @_inheritActorContext _ action: @escaping @Sendable () async -> Void
  ) -> some View {
    EmptyView()
  }
}
