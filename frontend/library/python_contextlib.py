"""contextlib: what is no decorator. suppress() is a try statement to the compiler."""


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, type, value, trace):
        return None


class closing:
    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        return self.thing

    def __exit__(self, type, value, trace):
        self.thing.close()


class ExitStack:
    def __init__(self):
        self.exits = []

    def __enter__(self):
        return self

    def enter_context(self, context):
        entered = context.__enter__()
        self.push(context)
        return entered

    def push(self, context):
        self.exits.append(lambda type, value, trace: context.__exit__(type, value, trace))
        return context

    def callback(self, function, *args):
        def call(type, value, trace):
            function(*args)
            return False

        self.exits.append(call)
        return function

    def close(self):
        while len(self.exits) > 0:
            self.exits.pop()(None, None, None)

    def pop_all(self):
        other = ExitStack()
        other.exits = self.exits
        self.exits = []
        return other

    def __exit__(self, type, value, trace):
        gone = False
        while len(self.exits) > 0:
            leave = self.exits.pop()
            if gone or type is None:
                leave(None, None, None)
            elif leave(type, value, trace):
                gone = True
        return gone
